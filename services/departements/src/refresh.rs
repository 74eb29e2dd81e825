//! Keeps the datasets in memory as new as the stored ones.
//!
//! Once a second, or sooner on a hint, the versions are read, two small rows; only a change reads
//! the records. While PostgreSQL is away the service goes on answering from what it has.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use water_database::departements::{Versions, snapshot, versions};
use water_database::{Changes, Database, Error};
use water_runtime::{Latch, telemetry};

use crate::datasets::Datasets;

/// How old an answer may be at most, beside the time of a query (data.md, "Serving it").
const EACH: Duration = Duration::from_secs(1);

/// The newest datasets; none until the database was read for the first time.
pub type Current = Arc<ArcSwapOption<Datasets>>;

/// Loads that were taken over, and looks that failed.
#[derive(Clone, Default)]
pub struct Counts {
    reads: Counter,
    failures: Counter,
}

impl Counts {
    /// Adds `dataset_reads_total` and `dataset_failures_total`.
    pub fn register(&self, metrics: &mut Registry) {
        let reads = "Times that changed records were read";
        metrics.register("dataset_reads", reads, self.reads.clone());
        let failures = "Looks for changes that failed; answers came from memory";
        metrics.register("dataset_failures", failures, self.failures.clone());
    }
}

/// Follows one database.
struct Refresh {
    database: Database,
    current: Current,
    /// What is in memory. Forgotten when the database was away: it may have come back from a
    /// backup or a replica, with other content under the same number.
    known: Option<Versions>,
    /// Hints of loads; none while nobody listens.
    changes: Option<Changes>,
}

/// Refreshes `current` for ever; sets `read` once there is something to answer from.
pub async fn follow(database: Database, current: Current, counts: Counts, read: Latch) {
    let mut refresh = Refresh {
        database,
        current,
        known: None,
        changes: None,
    };
    let mut pace = interval(EACH);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        tokio::select! {
            _ = pace.tick() => {}
            () = refresh.hint() => {}
        }
        match refresh.run().await {
            Ok(changed) => {
                counts.reads.inc_by(changed.into());
                read.set();
                if std::mem::take(&mut failing) {
                    info!("the datasets can be read again");
                }
            }
            Err(error) => {
                counts.failures.inc();
                // Said once an outage, not once a second.
                if !std::mem::replace(&mut failing, true) {
                    warn!(
                        error = telemetry::chain(&error),
                        "cannot read the datasets; answering from memory"
                    );
                }
            }
        }
    }
}

impl Refresh {
    /// Waits for a hint, or for the end of the connection that would bring one.
    async fn hint(&mut self) {
        let Some(changes) = &mut self.changes else {
            return pending().await;
        };
        if !changes.next().await {
            self.changes = None;
            self.known = None;
        }
    }

    /// Reads the records if they are not those in memory; says whether it did.
    async fn run(&mut self) -> Result<bool, Error> {
        // A look that fails leaves nothing known.
        let known = self.known.take();
        if self.changes.is_none() {
            // Without hints, a change is seen a second later.
            self.changes = Changes::listen(&self.database).await.ok();
        }
        let stored = versions(&self.database).await?;
        if known == Some(stored) {
            self.known = known;
            return Ok(false);
        }
        let snapshot = snapshot(&self.database).await?;
        self.known = Some(snapshot.versions);
        let Versions { stress, risk } = snapshot.versions;
        // Compressing takes some milliseconds, in which requests shall be answered.
        let made = tokio::task::spawn_blocking(move || Datasets::prepare(&snapshot)).await;
        let made = made.expect("preparing answers does not panic");
        self.current.store(Some(Arc::new(made)));
        info!(stress, risk, "serving new datasets");
        Ok(true)
    }
}
