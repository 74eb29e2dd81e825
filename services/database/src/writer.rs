//! Writes to PostgreSQL for `water-ingest`: one load is one transaction, all or nothing, one at a time for each
//! dataset.
//!
//! A load's writes and its lock belong to its transaction: a kill at any moment leaves the old data. Rows of a
//! history wait in a temporary table of the session.

mod batch;
mod difference;
mod epoch;
mod guards;
mod history;
mod legal;
mod levels;
mod lifting;
mod load;
mod provenance;
mod purge;
mod risk;
mod state;
mod stress;
mod verify;

use tokio_postgres::{Client, IsolationLevel, Transaction};

pub use batch::{Batch, HistoryRow};
pub use difference::{Difference, Value};
pub use history::{DeletionOutcome, Staging};
pub use load::{Conflict, History, Load, LoadError, Outcome, Refusal};
pub use provenance::Provenance;
pub use purge::PurgeCounts;
pub use risk::RiskRow;
pub use stress::StressRow;
pub use verify::Check;

use crate::error::{Attempt, Error, SettingsError};
use crate::migrations;
use crate::server::{Authority, Patience, Server};

/// Settings of the connection. Statements have no timeout, because a load of a million rows takes long; the server
/// notices within a minute that a writer is gone, even during a statement, and then releases its lock.
const SETTINGS: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
                        SET tcp_keepalives_idle = 20; SET tcp_keepalives_interval = 10; \
                        SET tcp_keepalives_count = 4; SET client_connection_check_interval = '10s'";

/// A connection with the rights of `water_writer`.
pub struct Writer {
    client: Client,
    waiting: fn(&str),
}

/// A connection that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL or the CA file.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The server.
    #[error(transparent)]
    Database(#[from] Error),
}

impl Writer {
    /// Connects. `url` is `postgresql://…`; TLS is used when its `sslmode` asks or an authority
    /// is given.
    pub async fn connect(
        url: &str,
        authority: Option<Authority<'_>>,
    ) -> Result<Self, ConnectError> {
        let client = Server::new(url, authority, Patience::LOAD)?
            .connect(SETTINGS, None)
            .await?;
        Ok(Self {
            client,
            waiting: |_| {},
        })
    }

    /// Whether the migrations of this build's version, or of a later one, were applied, which its loads need.
    pub async fn has_schema(&self) -> Result<bool, Error> {
        let newest = "SELECT coalesce(max(version), 0)::bigint >= $1 FROM water.migrations";
        let newest = self
            .client
            .query_one(newest, &[&migrations::newest()])
            .await;
        Ok(newest.attempting("reading the schema's version")?.get(0))
    }

    /// Sets the function called with the dataset's name when another load of it must end first.
    pub fn when_waiting(self, waiting: fn(&str)) -> Self {
        Self { waiting, ..self }
    }

    /// Ends the connection once the server has undone an abandoned load, so that a refused load has no lock.
    pub async fn close(self) {
        // The driver has only queued the ROLLBACK. A connection that fails has ended its transaction.
        let _ = self.client.batch_execute("").await;
    }

    /// Begins a load of `dataset`, which no other load changes meanwhile. A dry run takes no lock: it compares with
    /// the content of one moment, which other loads may change.
    async fn begin_load(&mut self, dataset: &str, load: &Load) -> Result<Transaction<'_>, Error> {
        if load.dry_run {
            let transaction = self.client.build_transaction();
            let transaction = transaction.isolation_level(IsolationLevel::RepeatableRead);
            return transaction.start().await.attempting("beginning to compare");
        }
        let waiting = self.waiting;
        let transaction = self.begin().await?;
        state::lock(&transaction, dataset, waiting).await?;
        Ok(transaction)
    }

    async fn begin(&mut self) -> Result<Transaction<'_>, Error> {
        self.client
            .transaction()
            .await
            .attempting("beginning a load")
    }
}
