//! `cargo dev down`: one kill, and the removal of what the kernel does not remove by itself.

use anyhow::Result;

use crate::cluster::Cluster;
use crate::clusters::{self, Clusters};
use crate::namespace;
use crate::progress::Progress;

/// Stops the development cluster and removes its files, but for the stores' data if `keep_data`.
pub fn run(keep_data: bool) -> Result<()> {
    let clusters = Clusters::of_user()?;
    if clusters.development().is_none() {
        eprintln!("There is no cluster.");
        return Ok(());
    }
    let claimed = clusters.claim_development()?;
    Progress::new().step("Stop the cluster", |_| stop(&claimed.cluster, keep_data))
}

/// Stops a cluster that the caller holds and removes its files.
pub fn stop(cluster: &Cluster, keep_data: bool) -> Result<()> {
    namespace::stop(cluster)?;
    if keep_data {
        clusters::remove_files_but_data(cluster)
    } else {
        clusters::remove_files(cluster)
    }
}
