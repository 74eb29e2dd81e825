//! The services' way to PostgreSQL: a pool of connections whose every answer has a deadline.

mod connection;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, Object, Pool, PoolError};
use tokio::time::{sleep, timeout};
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

pub(crate) use crate::database::connection::Connection;
use crate::error::{Attempt, Error, SettingsError};
use crate::server::{Authority, Patience, Server};

/// Settings of each connection. They are statements and not start-up options, which PgBouncer
/// refuses.
///
/// The generic plan: with a page's limit and offset as parameters PostgreSQL plans each call anew
/// otherwise, 1.4 to 1.8 times slower. Index scans only: right after a first load there are no
/// statistics, and a plan that reads and sorts a whole account would look cheap. The timeout: a
/// page takes a few milliseconds, and nobody waits longer for a server that is overloaded. The check:
/// every tenth of a second a busy server looks whether its client is still there. No compilation: a
/// table without an index to scan seems to cost so much that PostgreSQL would compile its statement for
/// each answer, which took 920 ms where the statement takes 0.4 ms.
const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
                        SET enable_bitmapscan = off; SET jit = off; SET statement_timeout = 2000; \
                        SET client_connection_check_interval = 100";

/// Longest wait for a connection, a free one or a new one. With [`ANSWER_TIMEOUT`] it stays below
/// the gate's 5 s, so that the gate hears why there is no answer.
const POOL_TIMEOUT: Duration = Duration::from_secs(2);

/// The statement timeout plus the way there and back: a server that went silent is not waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(2500);

/// Between two looks for a free connection where a new one was refused for its password.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Whether the schema is there.
const READY: &str = "SELECT FROM water.datasets LIMIT 1";

/// A pool of connections with the rights of `water_reader`. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    pub(crate) server: Server,
}

impl Database {
    /// Prepares a pool of at most `connections`. Nothing is connected yet: the first query does,
    /// so that a service can start, and say that it is not ready, while the server is away.
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
        Ok(Self { pool, server })
    }

    /// Whether the schema can be read: what a service asks before it calls itself ready.
    pub async fn check(&self) -> Result<(), Error> {
        let connection = self.connection().await?;
        let read = connection.batch_execute(READY);
        let read = answer("reading the schema", read).await;
        connection.answered(read)
    }

    /// A connection, waiting for a free one.
    pub(crate) async fn connection(&self) -> Result<Connection, Error> {
        const ATTEMPT: &str = "connecting to PostgreSQL";
        match timeout(POOL_TIMEOUT, self.free()).await {
            Ok(connection) => {
                let connection = connection.attempting(ATTEMPT)?;
                Ok(Connection::of(connection))
            }
            Err(_) => Err(Error::deadline(ATTEMPT)),
        }
    }

    /// A free connection or a new one. After a password was changed no new one can be made until the pod is
    /// rolled, and those that are open serve on: the next that is free is waited for.
    async fn free(&self) -> Result<Object, PoolError> {
        loop {
            match self.pool.get().await {
                Err(error) if is_wrong_password(&error) && self.pool.status().size > 0 => {
                    // Another try would cost the server a check of the password each time.
                    while self.pool.status().available == 0 && self.pool.status().size > 0 {
                        sleep(LOOK_EVERY).await;
                    }
                }
                free => return free,
            }
        }
    }
}

fn is_wrong_password(error: &PoolError) -> bool {
    matches!(error, PoolError::Backend(error) if error.code() == Some(&SqlState::INVALID_PASSWORD))
}

/// Waits for an answer, but not for ever: a server that is cut off answers nothing, not even that.
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
