//! The passwords of stores and people: made at random for each cluster, kept in one file that only
//! its owner can read.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cluster::Cluster;

/// Passwords. There is no `Debug`: those of the stores are printed by `cargo dev env` only.
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
    /// The portal's user of Redis.
    pub redis_portal: String,
    /// The portal itself at the identity provider.
    pub portal_client: String,
    /// The person who holds the account acme.
    pub acme_holder: String,
    /// The person who holds the account globex.
    pub globex_holder: String,
    /// The person who holds the account initech.
    pub initech_holder: String,
}

const FILE: &str = "credentials.json";

impl Credentials {
    /// The cluster's passwords. Those that it does not have yet are made: all of a new one, and
    /// some where its data was kept by an earlier version.
    pub fn find_or_make(folder: &Path) -> Result<Self> {
        if let Ok(found) = Self::read(folder) {
            return Ok(found);
        }
        let file = folder.join(FILE);
        let mut credentials = serde_json::to_value(Self::at_random()?)?;
        if let (Ok(found), Some(made)) = (fs::read(&file), credentials.as_object_mut()) {
            let found: Map<String, Value> = serde_json::from_slice(&found)
                .with_context(|| format!("cannot understand {}", file.display()))?;
            made.extend(found);
        }
        let unfinished = file.with_extension("unfinished");
        File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut opened| opened.write_all(credentials.to_string().as_bytes()))
            .and_then(|()| fs::rename(&unfinished, &file))
            .with_context(|| format!("cannot write {}", file.display()))?;
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

    /// The URL of Redis for the portal.
    pub fn redis_portal_url(&self, cluster: &Cluster) -> String {
        format!(
            "redis://water-portal:{}@{}:6379",
            self.redis_portal,
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
            redis_portal: password()?,
            portal_client: password()?,
            acme_holder: persons_password()?,
            globex_holder: persons_password()?,
            initech_holder: persons_password()?,
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

/// Short enough to be typed.
fn persons_password() -> Result<String> {
    let mut password = password()?;
    password.truncate(12);
    Ok(password)
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

    #[test]
    fn passwords_of_an_earlier_version_stay_and_new_ones_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let earlier = r#"{"water_owner": "kept"}"#;
        fs::write(folder.path().join(FILE), earlier).unwrap();
        let credentials = Credentials::find_or_make(folder.path()).unwrap();
        assert_eq!(credentials.water_owner, "kept");
        assert_eq!(credentials.portal_client.len(), 32);
    }
}
