//! The services' way to PostgreSQL: a pool of connections whose every answer has a deadline.

mod connection;

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, Object, Pool, PoolError, Status};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

pub(crate) use crate::database::connection::Connection;
use crate::error::{Attempt, Error, SettingsError};
use crate::server::{Authority, Patience, Server};

/// Settings of each connection. They are statements and not start-up options, which PgBouncer refuses.
///
/// Generic plan: a page's limit and offset are parameters, for which PostgreSQL would otherwise plan each call again,
/// 1.4 to 1.8 times slower. Index scans only: right after a first load there are no statistics, and a plan that reads
/// and sorts a whole account would look cheap. Timeout: a page takes a few milliseconds, and no client waits longer
/// for an overloaded server. Connection check: every tenth of a second a busy server checks that its client is still
/// connected. No compilation: a table without an index to scan seems so costly that PostgreSQL would compile its
/// statement for each answer, which took 920 ms for a statement of 0.4 ms.
const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
                        SET enable_bitmapscan = off; SET jit = off; SET statement_timeout = 2000; \
                        SET client_connection_check_interval = 100";

/// Longest wait for a connection, free or new. Together with [`ANSWER_TIMEOUT`] it is below the gate's 5 s, so that
/// the gate receives the reason for a missing answer.
const POOL_TIMEOUT: Duration = Duration::from_secs(2);

/// Statement timeout plus the round trip; ends the wait for a server that went silent.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(2500);

/// Longest time of a query with all its tries.
const QUESTION_TIMEOUT: Duration = Duration::from_millis(4500);

/// Pause between two checks for a free connection, while new ones are refused for their password.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Pause between two tries of a refused password: each costs the server as much as some pages.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// Statement that fails where the schema is missing.
const READY: &str = "SELECT FROM water.datasets LIMIT 1";

/// A queried connection and its answer.
pub(crate) type Reply<T> = (Connection, Result<T, tokio_postgres::Error>);

/// A pool of connections with the rights of `water_reader`. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    /// Time of the last try of a refused password.
    refused: Arc<Mutex<Option<Instant>>>,
    pub(crate) server: Server,
}

impl Database {
    /// Prepares a pool of at most `connections`. Connects nothing yet: the first query does, so that a service can
    /// start, and report that it is not ready, while the server is down.
    ///
    /// `url` is `postgresql://…`; TLS is used when its `sslmode` asks or a CA file is given.
    pub fn connect(
        url: &str,
        ca_file: Option<&Path>,
        connections: usize,
    ) -> Result<Self, SettingsError> {
        let server = Server::new(url, ca_file.map(Authority::File), Patience::SERVICE)?;
        let manager = match &server.tls {
            Some(tls) => Manager::new(server.config.clone(), tls.clone()),
            None => Manager::new(server.config.clone(), NoTls),
        };
        let set = Hook::async_fn(|client, _| {
            Box::pin(async move {
                let set = client.batch_execute(SETTINGS).await;
                set.map_err(HookError::Backend)
            })
        });
        let pool = Pool::builder(manager)
            .max_size(connections)
            .post_create(set)
            .build()
            .expect("a pool without deadlines of its own can be built");
        Ok(Self {
            pool,
            refused: Arc::default(),
            server,
        })
    }

    /// Checks that the schema can be read, before a service is ready.
    pub async fn check(&self) -> Result<(), Error> {
        let read = |connection: Connection| async move {
            let read = connection.batch_execute(READY).await;
            (connection, read)
        };
        self.ask("reading the schema", read).await
    }

    /// Runs a query on a free connection, which returns to the pool.
    pub(crate) async fn ask<T, F>(
        &self,
        attempt: &'static str,
        question: impl Fn(Connection) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Reply<T>>,
    {
        let (connection, rows) = self.ask_and_keep(attempt, question).await?;
        connection.answered(Ok(rows))
    }

    /// Runs a query on a free connection and returns the answer with that connection. A server may have ended an idle
    /// connection, which only its next query shows: another connection is queried then. Queries only read, so that
    /// one may run twice.
    pub(crate) async fn ask_and_keep<T, F>(
        &self,
        attempt: &'static str,
        question: impl Fn(Connection) -> F,
    ) -> Result<(Connection, T), Error>
    where
        F: Future<Output = Reply<T>>,
    {
        let asked = timeout(QUESTION_TIMEOUT, async {
            loop {
                let connection = self.connection().await?;
                let is_used_again = connection.is_used_again();
                let reply = timeout(ANSWER_TIMEOUT, question(connection)).await;
                let (connection, reply) = reply.map_err(|_| Error::deadline(attempt))?;
                match reply.attempting(attempt) {
                    Ok(rows) => return Ok((connection, rows)),
                    Err(error) if error.is_loss() && is_used_again => {
                        drop(connection.answered::<()>(Err(error)));
                    }
                    Err(error) => return connection.answered(Err(error)),
                }
            }
        });
        asked.await.unwrap_or(Err(Error::deadline(attempt)))
    }

    /// Opens every connection of the pool, before a pod is ready: after a change of its password none can be opened
    /// until the pod is rolled, and the open ones carry its requests.
    pub async fn fill(&self) -> Result<(), Error> {
        let mut open = Vec::new();
        let result = loop {
            if open.len() >= self.pool.status().max_size {
                break Ok(());
            }
            match self.connection().await {
                Ok(connection) => open.push(connection),
                Err(error) => break Err(error),
            }
        };
        for connection in open {
            connection.answered(Ok(()))?;
        }
        result
    }

    /// Returns a free or new connection within [`POOL_TIMEOUT`].
    pub(crate) async fn connection(&self) -> Result<Connection, Error> {
        const ATTEMPT: &str = "connecting to PostgreSQL";
        match timeout(POOL_TIMEOUT, self.free()).await {
            Ok(connection) => {
                let connection = connection.attempting(ATTEMPT)?;
                Ok(Connection::new(connection))
            }
            Err(_) => Err(Error::deadline(ATTEMPT)),
        }
    }

    /// Returns a free or new connection. After a change of the password none can be opened until the pod is rolled,
    /// and the open ones remain usable: waits for the next free one then.
    async fn free(&self) -> Result<Object, PoolError> {
        loop {
            let Status {
                available, size, ..
            } = self.pool.status();
            let is_full = available == 0 && size > 0;
            if is_full && !self.may_try(Instant::now()) {
                sleep(LOOK_EVERY).await;
                continue;
            }
            match self.pool.get().await {
                Err(error) if is_wrong_password(&error) && self.pool.status().size > 0 => {
                    *self.refused() = Some(Instant::now());
                }
                Ok(connection) if is_full => {
                    *self.refused() = None;
                    return Ok(connection);
                }
                free => return free,
            }
        }
    }

    /// Whether a new connection may be tried: while the password is refused, one a second for all requests.
    fn may_try(&self, now: Instant) -> bool {
        let mut refused = self.refused();
        let may = refused.is_none_or(|at| now.duration_since(at) >= TRY_EVERY);
        if may && refused.is_some() {
            *refused = Some(now);
        }
        may
    }

    fn refused(&self) -> MutexGuard<'_, Option<Instant>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_wrong_password(error: &PoolError) -> bool {
    matches!(error, PoolError::Backend(error) if error.code() == Some(&SqlState::INVALID_PASSWORD))
}

/// Waits for an answer up to [`ANSWER_TIMEOUT`]: a server that is cut off does not even report an error.
pub(crate) async fn answer<T>(
    attempt: &'static str,
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Error> {
    match timeout(ANSWER_TIMEOUT, asked).await {
        Ok(answer) => answer.attempting(attempt),
        Err(_) => Err(Error::deadline(attempt)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::assert_kept;

    #[test]
    fn its_statement_is_kept_for_later_migrations() {
        assert_kept("ready", READY);
    }
}
