//! Keeps the datasets in memory as new as the stored ones.
//!
//! Once a second, or sooner on a hint, the versions are read, two small rows; only a change reads the records. While
//! PostgreSQL is down the service goes on answering from memory.

mod counts;
mod hints;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use water_database::departements::{Snapshot, Version, Versions, snapshot, versions};
use water_database::{Database, Error};
use water_runtime::{Latch, telemetry};

use crate::datasets::Datasets;

pub use crate::refresh::counts::Counts;

/// Longest age of an answer, without the time of a query.
const EACH: Duration = Duration::from_secs(1);

/// The newest datasets; `None` until the database was first read.
pub type Current = Arc<ArcSwapOption<Datasets>>;

/// Refreshes `current` permanently; sets `read` once the database was read.
pub async fn follow(database: Database, current: Current, counts: Counts, read: Latch) {
    let (sender, hints) = mpsc::channel(1);
    tokio::join!(
        hints::forward(database.clone(), sender),
        refresh(
            Refresh::new(database, current, counts.clone()),
            hints,
            counts,
            read
        )
    );
}

async fn refresh(mut refresh: Refresh, mut hints: mpsc::Receiver<()>, counts: Counts, read: Latch) {
    let mut pace = interval(EACH);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        tokio::select! {
            _ = pace.tick() => {}
            Some(()) = hints.recv() => {}
        }
        match refresh.run().await {
            Ok(()) => {
                read.set();
                if std::mem::take(&mut failing) {
                    info!("the datasets can be read again");
                }
            }
            Err(error) => {
                counts.failures.inc();
                // Logged once an outage, not once a second.
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

/// State of following one database.
struct Refresh {
    database: Database,
    current: Current,
    counts: Counts,
    /// Versions of the answers in memory.
    served: Option<Versions>,
}

impl Refresh {
    fn new(database: Database, current: Current, counts: Counts) -> Self {
        Self {
            database,
            current,
            counts,
            served: None,
        }
    }

    /// Reads the records if their versions differ from those in memory, and serves them. A load after a restore, or after
    /// a failover that lost one, may get a number that was given before, but never its id.
    async fn run(&mut self) -> Result<(), Error> {
        let stored = versions(&self.database).await?;
        if self.served == Some(stored) {
            return Ok(());
        }
        let snapshot = snapshot(&self.database).await?;
        self.report_skipped(&snapshot);
        let versions = snapshot.versions;
        // Compressing takes some milliseconds, during which other requests must be answered.
        let made = tokio::task::spawn_blocking(move || Datasets::prepare(&snapshot)).await;
        let made = made.expect("preparing answers does not panic");
        self.current.store(Some(Arc::new(made)));
        self.counts.reads.inc();
        let numbers = [versions.stress, versions.risk].map(|version: Version| version.number);
        let [stress, risk] = numbers;
        info!(stress, risk, "serving new datasets");
        self.served = Some(versions);
        Ok(())
    }

    /// Reports records that only a newer version of this program understands, which are not served; the others are.
    fn report_skipped(&self, snapshot: &Snapshot) {
        let skipped = snapshot.skipped();
        self.counts.skipped.set(skipped.len() as i64);
        if !skipped.is_empty() {
            let records = skipped.join(", ");
            warn!(
                records,
                "stored records that this version does not understand are not served"
            );
        }
    }
}
