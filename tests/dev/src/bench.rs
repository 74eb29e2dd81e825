//! `cargo dev bench`: builds what is compared as it is shipped, but for the static linking, and measures it.

use anyhow::Result;
use clap::ValueEnum;

use crate::packages;
use crate::process::cargo;
use crate::progress::Progress;
use crate::web;

/// A part of the product that is compared by itself; `tests/bench/results` has a file of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The gate beside nginx, and beside nginx with Lua and Redis.
    Gate,
    /// The operator with 100 and with 10 000 ApiKeys.
    Operator,
    /// The parts that are written by hand beside the libraries that do the same.
    Parts,
    /// Pages of a history beside pgbench.
    History,
    /// A load of a history beside `psql \copy`.
    Ingest,
    /// The answers from memory beside nginx with the same files.
    Departements,
    /// The portal's pages beside nginx, its list of keys beside the API server's, and its memory.
    Portal,
}

impl Part {
    /// The argument of `water-bench`.
    fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Operator => "operator",
            Self::Parts => "parts",
            Self::History => "history",
            Self::Ingest => "ingest",
            Self::Departements => "departements",
            Self::Portal => "portal",
        }
    }

    /// The product's programs that it starts.
    fn runs(self) -> &'static [&'static str] {
        match self {
            Self::Gate => &["water-gate"],
            Self::Operator => &["water-gate", "water-operator"],
            Self::Parts => &[],
            Self::History => &["water-gate", "water-history", "water-ingest"],
            Self::Ingest => &["water-ingest"],
            Self::Departements => &["water-departements", "water-ingest"],
            Self::Portal => &["water-portal"],
        }
    }
}

/// Measures one part, or all.
pub fn run(part: Option<Part>) -> Result<()> {
    Progress::new().step("Debian packages", |step| {
        packages::install_missing(&packages::BENCHMARKS, step)
    })?;
    let parts = part.map_or_else(|| Part::value_variants().to_vec(), |part| vec![part]);
    // Its binary holds the pages.
    if parts.contains(&Part::Portal) {
        web::run()?;
    }
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
