//! A pooled connection during a query. It returns to the pool when it can answer the next one. If its client left
//! while the query goes on, it is closed, and the server ends the query when it checks for its client.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::Error;

/// Time for a query to end after its client has left. Most have ended by then.
const GRACE: Duration = Duration::from_millis(50);

/// A connection in use until [`Connection::answered`]. When it is dropped before that, by a client that left or after
/// a deadline, it is closed unless its query ends at once.
pub(crate) struct Connection {
    /// `None` only after `answered` or `drop`.
    object: Option<Object>,
}

impl Connection {
    pub(super) fn new(object: Object) -> Self {
        Self {
            object: Some(object),
        }
    }

    /// Rows of a statement that the connection prepares once.
    pub(crate) async fn rows(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.prepare_cached(statement).await?;
        self.query(&statement, parameters).await
    }

    /// The only row of a statement that the connection prepares once.
    pub(crate) async fn row(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, tokio_postgres::Error> {
        let statement = self.prepare_cached(statement).await?;
        self.query_one(&statement, parameters).await
    }

    /// Whether the connection was used before: the server may have ended it since.
    pub(crate) fn is_used_again(&self) -> bool {
        Object::metrics(self).recycle_count > 0
    }

    /// Returns the answer; the connection returns to the pool or is closed.
    pub(crate) fn answered<T>(mut self, answer: Result<T, Error>) -> Result<T, Error> {
        match &answer {
            // The server still works on the query.
            Err(error) if error.is_deadline() => drop(self),
            // Its prepared statements are of an older schema, and would fail each time; or it has ended.
            Err(error) if error.is_outdated_plan() || error.is_loss() => {
                drop(self.object.take().map(Object::take));
            }
            _ => drop(self.object.take()),
        }
        answer
    }
}

impl Deref for Connection {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.object
            .as_ref()
            .expect("it is there until it is answered")
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Object {
        self.object
            .as_mut()
            .expect("it is there until it is answered")
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else {
            return;
        };
        // Without a runtime the process ends, and the connection with it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(settle(object));
        }
    }
}

/// Returns the connection to the pool once it is idle, or closes it. Sends no request to cancel: the server may act
/// on it late and cancel the connection's next query, and PgBouncer 1.18 fails on some.
async fn settle(object: Object) {
    // The server answers this after the query before it.
    let idle = timeout(GRACE, object.batch_execute("")).await;
    if !matches!(idle, Ok(Ok(()))) {
        drop(Object::take(object));
    }
}
