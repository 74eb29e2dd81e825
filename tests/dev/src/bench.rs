//! `cargo dev bench`: builds the compared parts as they are shipped, but for the static linking, and measures
//! them.

use anyhow::Result;
use clap::ValueEnum;

use crate::packages;
use crate::process::cargo;
use crate::progress::Progress;

/// A part of the product that is compared by itself; `tests/bench/results` has a file of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The gate compared with nginx, and with nginx, Lua and Redis.
    Gate,
    /// The operator with 100 and with 10 000 ApiKeys.
    Operator,
    /// Pages of a history compared with pgbench.
    History,
    /// Answers about départements compared with nginx that serves them from files.
    Departements,
    /// Loads of a history compared with psql.
    Ingest,
}

impl Part {
    /// Returns the argument of `water-bench`.
    fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Operator => "operator",
            Self::History => "history",
            Self::Departements => "departements",
            Self::Ingest => "ingest",
        }
    }

    /// Returns the product's programs that it starts.
    fn runs(self) -> &'static [&'static str] {
        match self {
            Self::Gate => &["water-gate"],
            Self::Operator => &["water-gate", "water-operator"],
            Self::History => &["water-gate", "water-history", "water-ingest"],
            Self::Departements => &["water-departements", "water-ingest"],
            Self::Ingest => &["water-ingest"],
        }
    }
}

/// Measures one part, or all.
pub fn run(part: Option<Part>) -> Result<()> {
    Progress::new().step("Debian packages", |step| {
        packages::install_missing(&[packages::BENCHMARKS], step)
    })?;
    let parts = part.map_or_else(|| Part::value_variants().to_vec(), |part| vec![part]);
    for part in parts {
        for package in part.runs() {
            cargo(&["build", "--release", "--package", package], &[])?;
        }
        let arguments = [
            "run",
            "--release",
            "--package",
            "water-bench",
            "--",
            part.name(),
        ];
        cargo(&arguments, &[])?;
    }
    Ok(())
}
