//! The passwords of stores and people: made at random for each cluster, kept in one file that only
//! its owner can read.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use water_harness::certificates::write_private;

use crate::cluster::NODE_ADDRESS;

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
    /// Returns the cluster's passwords, made first where it has none.
    pub fn find_or_make(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE);
        if !file.exists() {
            let unfinished = file.with_extension("unfinished");
            let made = serde_json::to_string(&Self::at_random()?)?;
            write_private(&unfinished, &made)?;
            fs::rename(&unfinished, &file)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        Self::read(folder)
    }

    /// Reads the cluster's passwords.
    pub fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE);
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("cannot understand {}", file.display()))
    }

    /// Returns the file of users that Redis starts with: one who can add the others, and nobody without a
    /// password.
    pub fn redis_administrator_acl(&self) -> String {
        format!(
            "user default off\nuser administrator on >{} ~* &* +@all\n",
            self.redis_administrator
        )
    }

    /// Returns PostgreSQL's URL for migrations.
    pub fn postgres_owner_url(&self) -> String {
        postgres_url("water_owner", &self.water_owner)
    }

    /// Returns PostgreSQL's URL for loading data.
    pub fn postgres_writer_url(&self) -> String {
        postgres_url("water_writer", &self.water_writer)
    }

    /// Returns PostgreSQL's URL for the services.
    pub fn postgres_reader_url(&self) -> String {
        postgres_url("water_reader", &self.water_reader)
    }

    /// Returns the URL of Redis for the operator.
    pub fn redis_operator_url(&self) -> String {
        redis_url("water-operator", &self.redis_operator)
    }

    /// Returns the URL of Redis for the gate.
    pub fn redis_gate_url(&self) -> String {
        redis_url("water-gate", &self.redis_gate)
    }

    /// Returns the URL of Redis for the portal.
    pub fn redis_portal_url(&self) -> String {
        redis_url("water-portal", &self.redis_portal)
    }

    /// Returns Redis' URL with a user that may read everything, for tests.
    pub fn redis_administrator_url(&self) -> String {
        redis_url("administrator", &self.redis_administrator)
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

fn postgres_url(role: &str, password: &str) -> String {
    format!("postgresql://{role}:{password}@{NODE_ADDRESS}:5432/water?sslmode=disable")
}

fn redis_url(user: &str, password: &str) -> String {
    format!("redis://{user}:{password}@{NODE_ADDRESS}:6379")
}

/// Returns 128 random bits in hex: no character of it has a meaning in a URL, in SQL or in an ACL.
fn password() -> Result<String> {
    let mut random = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random))
        .context("cannot read /dev/urandom")?;
    Ok(hex::encode(random))
}

/// Returns a password that is short enough to be typed.
fn persons_password() -> Result<String> {
    let mut password = password()?;
    password.truncate(12);
    Ok(password)
}
