//! Which clusters there are on this machine, and which number a new one takes.
//!
//! Each number has a lock, held by the command that works on the cluster: two commands never change
//! one cluster at the same time, and a cluster of a test run whose lock is free belongs to a run
//! that was killed.

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::namespace;
use crate::project::project;

/// What a cluster is for.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// One for each checkout, until `down`.
    Development,
    /// One for each run of `cargo dev test`, gone with it.
    Test,
}

/// Whose cluster it is.
#[derive(Deserialize, Serialize)]
struct Record {
    project: PathBuf,
    purpose: Purpose,
}

/// A cluster that no other command changes while this is held.
pub struct Claimed {
    /// The cluster.
    pub cluster: Cluster,
    _lock: File,
}

/// All clusters of one user, below one folder.
pub struct Clusters {
    folder: PathBuf,
}

impl Clusters {
    /// The clusters in `${XDG_STATE_HOME:-$HOME/.local/state}/water-data`.
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

    /// This checkout's development cluster, if there is one.
    pub fn development(&self) -> Option<Cluster> {
        self.all().find(|cluster| {
            read(cluster).is_some_and(|record| {
                record.purpose == Purpose::Development && record.project == project()
            })
        })
    }

    /// This checkout's development cluster, which runs; an error names the remedy. What an `up`
    /// that failed has left does not run.
    pub fn running_development(&self) -> Result<Cluster> {
        let cluster = self.development().context(NO_CLUSTER)?;
        namespace::init_process(&cluster)?.context(NO_CLUSTER)?;
        Ok(cluster)
    }

    /// This checkout's development cluster, or a new number for it.
    pub fn claim_development(&self) -> Result<Claimed> {
        match self.development() {
            Some(cluster) => self.claim(cluster),
            None => self.claim_free(Purpose::Development),
        }
    }

    /// A cluster that nobody works on, to change or remove it.
    pub fn claim(&self, cluster: Cluster) -> Result<Claimed> {
        match self.try_lock(cluster.number)? {
            Some(lock) => Ok(Claimed {
                cluster,
                _lock: lock,
            }),
            None => bail!(
                "another `cargo dev` is at work on cluster {}: wait until it ends",
                cluster.number
            ),
        }
    }

    /// The first number that is free on this machine.
    pub fn claim_free(&self, purpose: Purpose) -> Result<Claimed> {
        for number in 1..=Cluster::MOST {
            let cluster = self.cluster(number);
            let Some(lock) = self.try_lock(number)? else {
                continue;
            };
            if read(&cluster).is_some_and(|record| record.purpose == Purpose::Test) {
                // Its lock is free: the run that made it was killed.
                namespace::stop(&cluster)?;
                remove_files(&cluster)?;
            }
            // A link without a folder is another user's cluster.
            if !cluster.folder.exists() && !namespace::link_exists(&cluster) {
                fs::create_dir_all(&cluster.folder)
                    .with_context(|| format!("cannot make {}", cluster.folder.display()))?;
                let record = serde_json::to_string(&Record {
                    project: project(),
                    purpose,
                })?;
                fs::write(cluster.file(RECORD), record)
                    .context("cannot write down whose cluster it is")?;
                return Ok(Claimed {
                    cluster,
                    _lock: lock,
                });
            }
        }
        bail!("all {} clusters are taken", Cluster::MOST)
    }

    fn all(&self) -> impl Iterator<Item = Cluster> {
        (1..=Cluster::MOST)
            .map(|number| self.cluster(number))
            .filter(|cluster| cluster.folder.exists())
    }

    fn cluster(&self, number: u8) -> Cluster {
        Cluster {
            number,
            folder: self.folder.join(number.to_string()),
        }
    }

    /// The lock ends with its holder, however that ends.
    fn try_lock(&self, number: u8) -> Result<Option<File>> {
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make {}", self.folder.display()))?;
        let path = self.folder.join(format!("{number}.lock"));
        let file =
            File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => {
                Err(error).context(format!("cannot lock {}", path.display()))
            }
        }
    }
}

const NO_CLUSTER: &str = "no cluster runs: start one with `cargo dev up`";

const RECORD: &str = "cluster.json";

/// What `down --keep-data` leaves: enough for a later `up` to find the data and the passwords again.
const DATA: [&str; 4] = [RECORD, "credentials.json", "postgres", "redis"];

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

fn read(cluster: &Cluster) -> Option<Record> {
    serde_json::from_slice(&fs::read(cluster.file(RECORD)).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn clusters(folder: &Path) -> Clusters {
        Clusters {
            folder: folder.to_owned(),
        }
    }

    #[test]
    fn a_checkout_keeps_its_development_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let first = clusters(folder.path())
            .claim_development()
            .unwrap()
            .cluster
            .number;
        assert_eq!(
            clusters(folder.path())
                .claim_development()
                .unwrap()
                .cluster
                .number,
            first
        );
    }

    #[test]
    fn without_a_cluster_and_after_a_failed_up_the_error_names_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let clusters = clusters(folder.path());
        let error = |clusters: &Clusters| clusters.running_development().unwrap_err().to_string();
        assert_eq!(error(&clusters), NO_CLUSTER);
        // What is left of an `up` that went no further than this.
        drop(clusters.claim_development().unwrap());
        assert_eq!(error(&clusters), NO_CLUSTER);
    }

    #[test]
    fn a_test_run_takes_another_number_than_the_development_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let development = clusters(folder.path()).claim_development().unwrap();
        let test = clusters(folder.path()).claim_free(Purpose::Test).unwrap();
        assert_ne!(test.cluster.number, development.cluster.number);
    }

    #[test]
    fn a_cluster_is_changed_by_one_command_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let _held = clusters(folder.path()).claim_development().unwrap();
        assert!(clusters(folder.path()).claim_development().is_err());
    }

    #[test]
    fn data_can_be_kept_with_the_passwords_that_open_it() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = clusters(folder.path()).claim_development().unwrap().cluster;
        for name in ["postgres", "redis", "etcd"] {
            fs::create_dir(cluster.file(name)).unwrap();
        }
        fs::write(cluster.file("credentials.json"), "{}").unwrap();
        remove_files_but_data(&cluster).unwrap();
        assert!(cluster.file("postgres").exists() && cluster.file("credentials.json").exists());
        assert!(!cluster.file("etcd").exists());
        assert_eq!(
            clusters(folder.path()).development().unwrap().number,
            cluster.number
        );
    }
}
