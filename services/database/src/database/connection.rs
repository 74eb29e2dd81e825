//! A pooled connection while it is asked something. It goes back to the pool when it can answer
//! the next question. If a query goes on whose asker left, its connection is closed, and the server
//! ends the query when it looks for its client.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::error::Error;

/// How long a query may go on after its asker has left. Most have ended by then.
const GRACE: Duration = Duration::from_millis(50);

/// A connection that is asked something until [`Connection::answered`]. Dropped before that, by a
/// client that left or after a deadline, it is closed unless its query ends at once.
pub(crate) struct Connection {
    /// Gone only after `answered` or `drop`.
    object: Option<Object>,
}

impl Connection {
    pub(super) fn of(object: Object) -> Self {
        Self {
            object: Some(object),
        }
    }

    /// Takes the answer, and gives the connection back or ends it.
    pub(crate) fn answered<T>(mut self, answer: Result<T, Error>) -> Result<T, Error> {
        match &answer {
            // The server still works on it.
            Err(error) if error.is_deadline() => drop(self),
            // Its prepared statements are of an older schema, and would fail each time.
            Err(error) if error.is_outdated_plan() => {
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

/// Gives the connection back once it is idle, or closes it. A request to cancel is not sent: the server
/// may act on it late and cancel the connection's next query, and PgBouncer 1.18 falls over some.
async fn settle(object: Object) {
    // Answered after the query before it.
    let idle = timeout(GRACE, object.batch_execute("")).await;
    if !matches!(idle, Ok(Ok(()))) {
        drop(Object::take(object));
    }
}
