//! Variables of the cluster under test, which `cargo dev env` prints.

use std::{env, path::PathBuf};

use anyhow::{Result, bail};

/// The cluster under test.
#[derive(Clone, Debug)]
pub struct Environment {
    /// `WATER_URL`: the API behind the ingress, such as `http://10.199.1.2`.
    pub url: String,
    /// `WATER_API_KEY`: a key of an Enterprise account with more than 1 000 analyses and 1 000 audits.
    pub api_key: String,
    /// `WATER_FREE_API_KEY`: a key of an account whose plan has no access.
    pub free_api_key: String,
    /// `WATER_POSTGRES_OWNER_URL`: the database, as the role that owns everything in it.
    pub postgres_owner_url: String,
    /// `WATER_REDIS_ADMINISTRATOR_URL`: Redis, with a user that may read everything.
    pub redis_administrator_url: String,
    /// `WATER_BINARIES`: the folder of the product's programs, which run on this machine as well.
    pub binaries: PathBuf,
    /// `KUBECONFIG`: the administrator's.
    pub kubeconfig: PathBuf,
    /// `WATER_VERSIONS`: the tags of two sets of images of the same sources, whose binaries report these versions.
    pub versions: Vec<String>,
}

impl Environment {
    /// Reads all variables; the missing ones are named at once.
    pub fn read() -> Result<Self> {
        let mut missing = Vec::new();
        let mut read = |name: &'static str| match env::var(name) {
            Ok(value) if !value.is_empty() => value,
            _ => {
                missing.push(name);
                String::new()
            }
        };
        let url = read("WATER_URL");
        let (api_key, free_api_key) = (read("WATER_API_KEY"), read("WATER_FREE_API_KEY"));
        let postgres_owner_url = read("WATER_POSTGRES_OWNER_URL");
        let redis_administrator_url = read("WATER_REDIS_ADMINISTRATOR_URL");
        let binaries = read("WATER_BINARIES").into();
        let kubeconfig = read("KUBECONFIG").into();
        let versions = read("WATER_VERSIONS");
        if !missing.is_empty() {
            bail!(
                "there is no cluster to test ({} not set): run `cargo dev test`",
                missing.join(", ")
            );
        }
        Ok(Self {
            url,
            api_key,
            free_api_key,
            postgres_owner_url,
            redis_administrator_url,
            binaries,
            kubeconfig,
            versions: versions.split(' ').map(str::to_owned).collect(),
        })
    }
}
