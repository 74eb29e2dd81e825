//! The two clusters that a user has, for development and for a test run, of which one can run at a
//! time on a machine.
//!
//! One lock is held by the command that works on either: two commands never change a cluster at the
//! same time.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::cluster::Cluster;
use crate::{namespace, wait};

const NO_CLUSTER: &str = "no cluster runs: start one with `cargo dev up`";
const RUNS: &str = "a cluster is running on this machine: stop it with `cargo dev down` (--keep-data keeps its databases)";

/// Name of the cluster of a test run.
const TEST: &str = "test";

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
        self.make_way(&claimed)?;
        make_folder(&claimed.cluster.folder)?;
        Ok(claimed)
    }

    /// Claims a new cluster for a test run, where no other one runs.
    pub fn claim_test(&self) -> Result<Claimed> {
        let claimed = self.claim(TEST)?;
        self.make_way(&claimed)?;
        if claimed.cluster.folder.exists() {
            remove_files(&claimed.cluster)?;
        }
        make_folder(&claimed.cluster.folder)?;
        Ok(claimed)
    }

    /// Ends the cluster of a test run that was killed, and fails where another than the claimed one runs. A test run
    /// holds the lock for as long as its cluster is there: that the lock is ours proves that the run is dead.
    fn make_way(&self, claimed: &Claimed) -> Result<()> {
        let test = self.cluster(TEST);
        namespace::end(&test)?;
        let running = namespace::running()?;
        let is_claimed = |cluster: &Cluster| cluster.folder == claimed.cluster.folder;
        ensure!(running.iter().all(is_claimed), RUNS);
        // Link and control groups are those of the claimed one, if that runs.
        if running.is_empty() {
            namespace::stop(&test)?;
        }
        Ok(())
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

/// Removes the cluster of a test run that was killed, and fails where one runs or a command is at work on one: a test
/// run cannot start its own then.
pub fn make_way_for_test() -> Result<()> {
    Clusters::of_user()?.claim_test().map(drop)
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Removes all files of a cluster that does not run. The browser of a run that was killed may write some until it ends.
pub fn remove_files(cluster: &Cluster) -> Result<()> {
    let folder = cluster.folder.display();
    let what = format!("{folder} is removed");
    wait::until(SOON, &what, || match fs::remove_dir_all(&cluster.folder) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(None),
        removed => removed
            .map(Some)
            .with_context(|| format!("cannot remove {folder}")),
    })
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
