//! The two clusters that a user has, for development and for a test run, of which one can run at a
//! time on a machine.
//!
//! One lock is held by the command that works on either: two commands never change a cluster at the
//! same time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::cluster::Cluster;
use crate::{namespace, wait};

const NO_CLUSTER: &str = "no cluster runs: start one with `cargo dev up`";
const RUNS: &str = "a cluster is running on this machine: stop it with `cargo dev down` (--keep-data keeps its databases)";

/// A second, unless the machine is busy.
const SOON: Duration = Duration::from_secs(120);

/// Files that `down --keep-data` leaves: enough for a later `up` to find the data and the passwords again.
const DATA: [&str; 3] = ["credentials.json", "postgres", "redis"];

/// A cluster that no other command changes while this is held.
pub struct Claimed {
    /// The cluster.
    pub cluster: Cluster,
    _lock: File,
}

/// The clusters of one user, below one folder.
pub struct Clusters {
    folder: PathBuf,
}

impl Clusters {
    /// Returns the clusters in `${XDG_STATE_HOME:-$HOME/.local/state}/water-data`.
    pub fn of_user() -> Result<Self> {
        let base = match std::env::var_os("XDG_STATE_HOME") {
            Some(folder) if !folder.is_empty() => PathBuf::from(folder),
            _ => PathBuf::from(
                std::env::var_os("HOME").context("neither XDG_STATE_HOME nor HOME is set")?,
            )
            .join(".local/state"),
        };
        Ok(Self {
            folder: base.join("water-data"),
        })
    }

    /// Returns the folder of all clusters' files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the development cluster, if there is one.
    pub fn development(&self) -> Option<Cluster> {
        let cluster = self.cluster("development");
        cluster.folder.exists().then_some(cluster)
    }

    /// Returns the development cluster, which runs; an error names the remedy. The remains of an `up` that
    /// failed do not run.
    pub fn running_development(&self) -> Result<Cluster> {
        let cluster = self.development().context(NO_CLUSTER)?;
        namespace::init_process(&cluster)?.context(NO_CLUSTER)?;
        Ok(cluster)
    }

    /// Claims the development cluster, to start, change or remove it.
    pub fn claim_development(&self) -> Result<Claimed> {
        let claimed = self.claim("development")?;
        refuse_others(&claimed.cluster)?;
        make_folder(&claimed.cluster.folder)?;
        Ok(claimed)
    }

    /// Claims a new cluster for a test run, where no other one runs.
    pub fn claim_test(&self) -> Result<Claimed> {
        let claimed = self.claim("test")?;
        let cluster = &claimed.cluster;
        refuse_others(cluster)?;
        // Left by a run that was killed.
        namespace::stop(cluster)?;
        if cluster.folder.exists() {
            remove_files(cluster)?;
        }
        make_folder(&cluster.folder)?;
        Ok(claimed)
    }

    fn cluster(&self, name: &str) -> Cluster {
        Cluster {
            folder: self.folder.join(name),
        }
    }

    /// Takes the lock, which ends with its holder, however that ends.
    fn claim(&self, name: &str) -> Result<Claimed> {
        let cluster = self.cluster(name);
        make_folder(&self.folder)?;
        let path = self.folder.join("lock");
        let lock =
            File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Claimed {
                cluster,
                _lock: lock,
            }),
            Err(fs::TryLockError::WouldBlock) => {
                bail!("another `cargo dev` is at work on a cluster: wait until it ends")
            }
            Err(fs::TryLockError::Error(error)) => {
                Err(error).context(format!("cannot lock {}", path.display()))
            }
        }
    }
}

/// Fails where a cluster runs or a command is at work on one: a test run cannot start its own then. What a killed test
/// run has left is none.
pub fn refuse_running() -> Result<()> {
    let claimed = Clusters::of_user()?.claim("test")?;
    refuse_others(&claimed.cluster)
}

/// Fails where another cluster than this one runs. A run that is killed takes its cluster along, whose link goes last:
/// it is waited for.
fn refuse_others(cluster: &Cluster) -> Result<()> {
    let is_free = wait::until(SOON, "the link of a cluster that has ended is gone", || {
        if !namespace::link_exists() || namespace::init_process(cluster)?.is_some() {
            return Ok(Some(true));
        }
        Ok(namespace::any_runs()?.then_some(false))
    });
    ensure!(is_free.context(RUNS)?, RUNS);
    Ok(())
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Removes all files of a cluster that does not run.
pub fn remove_files(cluster: &Cluster) -> Result<()> {
    fs::remove_dir_all(&cluster.folder)
        .with_context(|| format!("cannot remove {}", cluster.folder.display()))
}

/// Removes the files of a cluster that does not run, but for the stores' data.
pub fn remove_files_but_data(cluster: &Cluster) -> Result<()> {
    let entries = fs::read_dir(&cluster.folder)
        .with_context(|| format!("cannot read {}", cluster.folder.display()))?;
    for entry in entries {
        let entry = entry?;
        if DATA.iter().any(|kept| entry.file_name() == *kept) {
            continue;
        }
        let path = entry.path();
        let removed = if entry.file_type()?.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn clusters() -> (TempDir, Clusters) {
        let folder = tempfile::tempdir().unwrap();
        let clusters = Clusters {
            folder: folder.path().to_owned(),
        };
        (folder, clusters)
    }

    #[test]
    fn a_failed_up_leaves_no_cluster_that_runs() {
        let (_folder, clusters) = clusters();
        let error = || clusters.running_development().unwrap_err().to_string();
        assert_eq!(error(), NO_CLUSTER);
        make_folder(&clusters.cluster("development").folder).unwrap();
        assert_eq!(error(), NO_CLUSTER);
    }

    #[test]
    fn clusters_are_changed_by_one_command_at_a_time() {
        let (_folder, clusters) = clusters();
        let held = clusters.claim("development").unwrap();
        assert!(clusters.claim("test").is_err());
        drop(held);
        assert!(clusters.claim("test").is_ok());
    }
}
