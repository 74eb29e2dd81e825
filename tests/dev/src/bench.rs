//! `cargo dev bench`: builds what is compared as it is shipped, but for the static linking, and measures it.

use anyhow::Result;
use clap::ValueEnum;

use crate::packages;
use crate::process::cargo;
use crate::progress::Progress;

/// A part of the product that is compared by itself; `tests/bench/results` has a file of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The gate beside nginx, and beside nginx with Lua and Redis.
    Gate,
    /// The parts that are written by hand beside the libraries that do the same.
    Parts,
}

impl Part {
    /// The argument of `water-bench`.
    fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Parts => "parts",
        }
    }
}

/// Measures one part, or all.
pub fn run(part: Option<Part>) -> Result<()> {
    Progress::new().step("Debian packages", |step| {
        packages::install_missing(&packages::BENCHMARKS, step)
    })?;
    let parts = part.map_or_else(|| Part::value_variants().to_vec(), |part| vec![part]);
    if parts.contains(&Part::Gate) {
        cargo(&["build", "--release", "--package", "water-gate"], &[])?;
    }
    for part in parts {
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
