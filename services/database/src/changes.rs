//! Hints that a load changed a dataset. They only make a reader check sooner: behind a pooler, and while the
//! connection is down, they are lost.

use tokio::sync::mpsc;
use tokio_postgres::Client;

use crate::database::Database;
use crate::error::Error;

/// Statement that the connection begins with.
const SETTINGS: &str = "LISTEN water_datasets";

/// A connection that receives the hints.
pub struct Changes {
    hints: mpsc::Receiver<()>,
    /// The connection ends with its client.
    _client: Client,
}

impl Changes {
    /// Begins to listen, on a connection outside the pool.
    pub async fn listen(database: &Database) -> Result<Self, Error> {
        let (sender, hints) = mpsc::channel(1);
        let client = database.server.connect(SETTINGS, Some(sender)).await?;
        Ok(Self {
            hints,
            _client: client,
        })
    }

    /// Waits for a hint; `false` when the connection has ended and none will come.
    pub async fn next(&mut self) -> bool {
        self.hints.recv().await.is_some()
    }
}
