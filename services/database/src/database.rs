//! The services' way to PostgreSQL: a pool of connections whose every answer has a deadline.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use deadpool_postgres::{Manager, Object, Pool, PoolConfig, Runtime, Timeouts};
use tokio_postgres::NoTls;

use crate::error::{Attempt, Error, SettingsError};
use crate::server::Server;

/// Settings of each connection.
///
/// The generic plan: with a page's limit and offset as parameters PostgreSQL plans each call anew
/// otherwise, 1.4 to 1.8 times slower. Index scans only: right after a first load there are no
/// statistics, and a plan that reads and sorts a whole account would look cheap. The timeout: a
/// page takes a few milliseconds, and nobody waits longer for a server that is overloaded.
const OPTIONS: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off \
                       -c statement_timeout=2000";

/// Longest wait for a free connection, and for a new one.
const POOL_TIMEOUT: Duration = Duration::from_secs(2);

/// The statement timeout plus the way there and back: a server that went silent is not waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(2500);

/// A pool of connections with the rights of `water_reader`. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    pub(crate) server: Server,
}

impl Database {
    /// Prepares a pool of two connections a core. Nothing is connected yet: the first query does,
    /// so that a service can start, and say that it is not ready, while the server is away.
    ///
    /// `url` is `postgresql://…`; TLS is used when its `sslmode` asks or a CA file is given.
    pub fn connect(url: &str, ca_file: Option<&Path>) -> Result<Self, SettingsError> {
        let server = Server::new(url, ca_file)?.with_options(OPTIONS);
        let manager = match &server.tls {
            Some(tls) => Manager::new(server.config.clone(), tls.clone()),
            None => Manager::new(server.config.clone(), NoTls),
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let pool = Pool::builder(manager)
            .config(PoolConfig {
                max_size: 2 * cores,
                ..PoolConfig::default()
            })
            .timeouts(Timeouts {
                wait: Some(POOL_TIMEOUT),
                create: Some(POOL_TIMEOUT),
                recycle: Some(POOL_TIMEOUT),
            })
            .runtime(Runtime::Tokio1)
            .build()
            .expect("a pool with a runtime can be built");
        Ok(Self { pool, server })
    }

    /// Whether the schema can be read: what a service asks before it calls itself ready.
    pub async fn check(&self) -> Result<(), Error> {
        let connection = self.connection().await?;
        let read = connection.batch_execute("SELECT FROM water.datasets LIMIT 1");
        answer("reading the schema", read).await
    }

    /// A connection, waiting for a free one.
    pub(crate) async fn connection(&self) -> Result<Object, Error> {
        self.pool.get().await.attempting("connecting to PostgreSQL")
    }
}

/// Waits for an answer, but not for ever: a server that is cut off answers nothing, not even that.
pub(crate) async fn answer<T>(
    attempt: &'static str,
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(ANSWER_TIMEOUT, asked).await {
        Ok(answer) => answer.attempting(attempt),
        Err(_) => Err(Error::deadline(attempt)),
    }
}
