//! The stores' passwords: made at random for each cluster, kept in one file that only its owner can read.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;

/// Passwords of the stores' users. There is no `Debug`: they are never printed but by `cargo dev env`.
#[derive(Deserialize, Serialize)]
pub struct Credentials {
    /// Migrates the database.
    pub water_owner: String,
    /// Loads data.
    pub water_writer: String,
    /// Serves data.
    pub water_reader: String,
    /// Sets up the other users of Redis.
    pub redis_administrator: String,
    /// The operator's user of Redis.
    pub redis_operator: String,
    /// The gate's user of Redis.
    pub redis_gate: String,
}

const FILE: &str = "credentials.json";

impl Credentials {
    /// The cluster's passwords, made if it has none yet.
    pub fn find_or_make(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE);
        if !file.exists() {
            let credentials = Self::at_random()?;
            let unfinished = file.with_extension("unfinished");
            File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)
                .and_then(|mut opened| {
                    opened.write_all(serde_json::to_string(&credentials)?.as_bytes())
                })
                .and_then(|()| fs::rename(&unfinished, &file))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        Self::read(folder)
    }

    /// The cluster's passwords.
    pub fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE);
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("cannot understand {}", file.display()))
    }

    /// The file of users that Redis starts with: one who can add the others, and nobody without a password.
    pub fn redis_administrator_acl(&self) -> String {
        format!(
            "user default off\nuser administrator on >{} ~* &* +@all\n",
            self.redis_administrator
        )
    }

    /// PostgreSQL's URL for migrations.
    pub fn postgres_owner_url(&self, cluster: &Cluster) -> String {
        postgres_url(cluster, "water_owner", &self.water_owner)
    }

    /// PostgreSQL's URL for loading data.
    pub fn postgres_writer_url(&self, cluster: &Cluster) -> String {
        postgres_url(cluster, "water_writer", &self.water_writer)
    }

    /// PostgreSQL's URL for the services.
    pub fn postgres_reader_url(&self, cluster: &Cluster) -> String {
        postgres_url(cluster, "water_reader", &self.water_reader)
    }

    /// The URL of Redis for the operator.
    pub fn redis_operator_url(&self, cluster: &Cluster) -> String {
        format!(
            "redis://water-operator:{}@{}:6379",
            self.redis_operator,
            cluster.node_address()
        )
    }

    /// The URL of Redis for the gate.
    pub fn redis_gate_url(&self, cluster: &Cluster) -> String {
        format!(
            "redis://water-gate:{}@{}:6379",
            self.redis_gate,
            cluster.node_address()
        )
    }

    /// Redis' URL with a user that may read everything, for tests.
    pub fn redis_administrator_url(&self, cluster: &Cluster) -> String {
        format!(
            "redis://administrator:{}@{}:6379",
            self.redis_administrator,
            cluster.node_address()
        )
    }

    fn at_random() -> Result<Self> {
        Ok(Self {
            water_owner: password()?,
            water_writer: password()?,
            water_reader: password()?,
            redis_administrator: password()?,
            redis_operator: password()?,
            redis_gate: password()?,
        })
    }
}

fn postgres_url(cluster: &Cluster, role: &str, password: &str) -> String {
    format!(
        "postgresql://{role}:{password}@{}:5432/water?sslmode=disable",
        cluster.node_address()
    )
}

/// 128 random bits in hex: no character of it has a meaning in a URL, in SQL or in an ACL.
fn password() -> Result<String> {
    let mut random = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random))
        .context("cannot read /dev/urandom")?;
    Ok(hex::encode(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_made_once_and_differ() {
        let folder = tempfile::tempdir().unwrap();
        let made = Credentials::find_or_make(folder.path()).unwrap();
        let found = Credentials::find_or_make(folder.path()).unwrap();
        assert_eq!(made.redis_gate, found.redis_gate);
        assert_ne!(made.redis_gate, made.redis_operator);
    }
}
