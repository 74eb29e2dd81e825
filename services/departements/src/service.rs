//! Start of the service: its background task, and its routes with their data.

use serde_json::json;
use water_database::Database;
use water_http::Backend;
use water_runtime::{Admin, BoxError, Process};

use crate::answers::Answers;
use crate::config::Config;
use crate::refresh::{Counts, Current, follow};
use crate::routes::routes;

/// Opens the ports and follows the database. `random` distinguishes this process' request ids from those of others.
pub fn start(config: &Config, random: u64, process: &mut Process) -> Result<Backend, BoxError> {
    let backend = &config.backend;
    let database = Database::connect(
        backend.postgres_url.expose(),
        backend.postgres_ca_file.as_deref(),
        backend.postgres_connections.get(),
    )?;
    let current = Current::default();
    let refreshes = Counts::default();
    refreshes.register(&mut process.metrics);
    let read = process.readiness.latch("datasets");
    let following = follow(database, Current::clone(&current), refreshes, read);
    process.tasks.spawn("refresh", following);

    let counted = Current::clone(&current);
    let data = |admin: Admin| admin.json("/data", move || records(&counted));
    Backend::open(backend, random, process, data, routes(current))
}

/// Counts the records by dataset, for the operator, which checks whether data was loaded.
fn records(current: &Current) -> serde_json::Value {
    let datasets = current.load();
    let count = |answers: Option<&Answers>| answers.map_or(0, |answers| answers.by_code.len());
    json!({
        "stress": count(datasets.as_ref().and_then(|datasets| datasets.stress.as_ref())),
        "risk": count(datasets.as_ref().and_then(|datasets| datasets.risk.as_ref())),
    })
}
