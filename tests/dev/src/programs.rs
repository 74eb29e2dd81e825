//! The cluster's Go programs: from the cache or built with visible progress, then given to the cluster.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context, Result};
use water_harness::programs::{self, NODE_NAMES, Program};

use crate::cluster::Cluster;
use crate::progress::Step;

/// Builds what the cache lacks.
pub fn build_missing(step: &Step) -> Result<()> {
    programs::build_missing(&mut |progress| {
        step.count(progress.compiled, progress.packages, progress.message);
    })
}

/// Puts the programs into the cluster's folder, where its processes see them. A cluster that runs
/// keeps those that it was started with.
pub fn provide(cluster: &Cluster) -> Result<()> {
    let folder = cluster.file("programs");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the programs of an earlier run")?;
    }
    fs::create_dir(&folder).context("cannot make the folder of programs")?;
    for program in Program::ALL {
        let (cached, provided) = (program.path()?, folder.join(program.name()));
        // A link costs nothing; where the cache is on another file system, a copy does.
        fs::hard_link(&cached, &provided)
            .or_else(|_| fs::copy(&cached, &provided).map(drop))
            .with_context(|| format!("cannot give {} to the cluster", cached.display()))?;
    }
    for name in NODE_NAMES {
        symlink(Program::Node.name(), folder.join(name))
            .with_context(|| format!("cannot link {name}"))?;
    }
    Ok(())
}
