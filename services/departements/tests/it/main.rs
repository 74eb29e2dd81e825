//! The service over real HTTP, on a real PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod answers;
mod binary;
mod following;
mod outages;
mod readers;

use anyhow::ensure;
use water_harness::wait_until;
use water_kit::{Database, Loader, Running, SOON, day, risk, stress};

const STRESS: &str = "/api/v1/stress";
const RISQUE: &str = "/api/v1/risque";
/// The header that asks for CSV.
const CSV: (&str, &str) = ("X-Water-Format", "csv");

/// Starts the service in this process, on a database that may be down.
fn start(database: &Database) -> Running {
    Running::start(&database.reader_url(), water_departements::start)
}

/// Starts the service with one load of each dataset, and a loader of further ones.
async fn with_data() -> (Running, Loader) {
    let database = Database::new().await;
    let mut loader = database.writer().await;
    let codes = ["30", "2B", "34", "01", "971", "2A", "29"];
    loader.stress(2, &codes.map(|code| stress(code, 3.0))).await;
    loader.risk(1, &codes.map(|code| risk(code, 62.5))).await;
    (start(&database).ready().await, loader)
}

/// Waits until the list of `path` is as of this day.
async fn until(service: &Running, path: &str, as_of: i64) {
    let seen = async || {
        let answer = service.get(path).await;
        let is_seen = answer.json()?["updatedAt"] == day(as_of).to_string();
        ensure!(is_seen, "{answer:?}");
        Ok(())
    };
    wait_until("the new dataset", SOON, seen).await.unwrap();
}
