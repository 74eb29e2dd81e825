//! `water-ingest`'s way to PostgreSQL: one load is one transaction, all or nothing, one at a time
//! for each dataset.
//!
//! Everything a load needs lives in its transaction, temporary tables and the lock too: it works
//! behind a pooler, and a kill at any moment leaves the old data.

mod batch;
mod history;
mod levels;
mod load;
mod provenance;
mod purge;
mod risk;
mod state;
mod stress;

use std::path::Path;

use tokio_postgres::{Client, Transaction};

pub use batch::{Batch, HistoryRow};
pub use history::{Conflict, Staging};
pub use load::{History, Load, LoadError, Outcome, Refusal};
pub use provenance::Provenance;
pub use purge::Purged;
pub use risk::RiskRow;
pub use stress::StressRow;

use crate::error::{Attempt, Error, SettingsError};
use crate::server::Server;

/// No statement timeout: a load of a million rows takes its time. A writer that died is noticed by
/// the server within a minute, so that its lock does not stay.
const OPTIONS: &str = "-c statement_timeout=0 -c tcp_keepalives_idle=20 -c tcp_keepalives_interval=10 \
                       -c tcp_keepalives_count=4";

/// One connection with the rights of `water_writer`.
pub struct Writer {
    client: Client,
}

/// Why there is no connection.
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
    /// Connects. `url` is `postgresql://…`; TLS is used when its `sslmode` asks or a CA file is
    /// given.
    pub async fn connect(url: &str, ca_file: Option<&Path>) -> Result<Self, ConnectError> {
        let client = Server::new(url, ca_file)?
            .with_options(OPTIONS)
            .connect(None)
            .await?;
        Ok(Self { client })
    }

    async fn begin(&mut self) -> Result<Transaction<'_>, Error> {
        self.client
            .transaction()
            .await
            .attempting("beginning a load")
    }
}
