//! Start of the service: its background task, and its routes with their data.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use water_database::Database;
use water_http::Backend;
use water_runtime::{BoxError, Latch, Process, telemetry};

use crate::bulk::Bulk;
use crate::config::Config;
use crate::routes::routes;

/// Interval between two tries of a database that cannot be read yet.
const EACH: Duration = Duration::from_secs(1);

/// Opens the ports and tries to read the database. `random` distinguishes this process' request ids from those of
/// others.
pub fn start(config: &Config, random: u64, process: &mut Process) -> Result<Backend, BoxError> {
    let backend = &config.backend;
    let connections = backend.postgres_connections.get();
    let database = Database::connect(
        backend.postgres_url.expose(),
        backend.postgres_ca_file.as_deref(),
        connections,
    )?;
    let read = process.readiness.latch("database");
    let first_read = first_read(database.clone(), read);
    process.tasks.spawn("first read", first_read);
    let bulk = Bulk::new(database.clone(), connections);
    let routes = routes(database, bulk);
    Backend::open(backend, random, process, |admin| admin, routes)
}

/// Makes the service ready once the database was read. Later outages are answered with 503 and do not make it
/// unready: then no gate could reach it to receive the reason.
async fn first_read(database: Database, read: Latch) {
    let mut pace = interval(EACH);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut said = false;
    loop {
        pace.tick().await;
        match database.check().await {
            Ok(()) => break,
            // Logged once, not once a second.
            Err(error) if !std::mem::replace(&mut said, true) => {
                warn!(
                    error = telemetry::chain(&error),
                    "cannot read the database; not ready"
                );
            }
            Err(_) => {}
        }
    }
    if let Err(error) = database.fill().await {
        warn!(
            error = telemetry::chain(&error),
            "cannot open all connections to the database before they are needed"
        );
    }
    read.set();
    info!("the database can be read");
    std::future::pending().await
}
