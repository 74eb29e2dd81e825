//! Data for the cluster: real alert levels of one day, and for the rest generated data, labelled as such.

use std::process::Command;

use anyhow::{Context, Result};

use crate::binaries::binary;
use crate::cluster::Cluster;
use crate::credentials::Credentials;
use crate::process::run;

/// Loads the demonstration's data into a database that has none; what somebody loaded stays.
pub fn load(cluster: &Cluster, credentials: &Credentials) -> Result<()> {
    let url = credentials.postgres_writer_url(cluster);
    let loads = run(ingest(&url).args(["provenance", "--limit=1"]))?;
    let loads: serde_json::Value = serde_json::from_str(&loads)
        .context("cannot understand what `water-ingest provenance` printed")?;
    if loads.as_array().is_some_and(|loads| !loads.is_empty()) {
        return Ok(());
    }
    run(ingest(&url).arg("demo")).map(drop)
}

fn ingest(url: &str) -> Command {
    let mut ingest = binary("water-ingest");
    ingest.env("WATER_POSTGRES_URL", url);
    ingest
}
