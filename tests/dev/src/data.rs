//! Data for the cluster: real alert levels of one day, and for the rest generated data, labelled as such.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::binaries::binary;
use crate::cluster::Cluster;
use crate::credentials::Credentials;
use crate::process::{run, run_with_input};

/// The histories, by the names of their datasets.
const HISTORIES: [&str; 2] = ["analyses", "audits"];

/// Accounts of people who sign in to the portal: the demonstration's histories are renamed to theirs. The
/// other account has none, as any account at first.
const HOLDERS: [(&str, &str); 2] = [("demo-1,", "acme,"), ("demo-2,", "globex,")];

/// The day that generated data describes.
const AS_OF: &str = "2026-01-01";

/// Source of the data, in the demonstration's own words.
const SOURCE: &str = "synthetic: water-ingest demo --seed 1";

/// Loads the demonstration's data into a database that has none; what somebody loaded stays.
pub fn load(cluster: &Cluster, credentials: &Credentials) -> Result<()> {
    if is_loaded(credentials)? {
        return Ok(());
    }
    let url = credentials.postgres_writer_url();
    run(ingest(&url).args(["demo", "--as-of", AS_OF]))?;
    let folder = cluster.file("demo");
    run(ingest(&url)
        .args(["demo", "--accounts=2", "--as-of", AS_OF, "--write-to"])
        .arg(&folder))?;
    for history in HISTORIES {
        let file = folder.join(format!("synthetic-{history}.csv"));
        let rows =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut load = ingest(&url);
        load.args(["load", history, "-", "--synthetic"])
            .args(["--as-of", AS_OF, "--source", SOURCE]);
        run_with_input(&mut load, &of_holders(&rows))?;
    }
    Ok(())
}

/// Returns whether the database has data.
pub fn is_loaded(credentials: &Credentials) -> Result<bool> {
    let url = credentials.postgres_writer_url();
    let loads = run(ingest(&url).args(["provenance", "--limit=1"]))?;
    let loads: Vec<serde_json::Value> = serde_json::from_str(&loads)
        .context("cannot understand what `water-ingest provenance` printed")?;
    Ok(!loads.is_empty())
}

/// Renames the rows of a history, which begin with their account, to those of [`HOLDERS`].
fn of_holders(rows: &str) -> String {
    let mut renamed = String::with_capacity(rows.len());
    for row in rows.lines() {
        let holder = HOLDERS.iter().find_map(|(demo, holder)| {
            let rest = row.strip_prefix(demo)?;
            Some(format!("{holder}{rest}"))
        });
        renamed.push_str(holder.as_deref().unwrap_or(row));
        renamed.push('\n');
    }
    renamed
}

fn ingest(url: &str) -> Command {
    let mut ingest = binary("water-ingest");
    ingest.env("WATER_POSTGRES_URL", url);
    ingest
}
