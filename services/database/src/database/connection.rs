//! A pooled connection while it is asked something. It goes back to the pool when it can answer
//! the next question. A query whose asker left and that goes on is cancelled, and its connection
//! closed.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::NoTls;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Error;

/// How long a query may go on after its asker has left. Most have ended by then.
const GRACE: Duration = Duration::from_millis(50);

/// Longest wait until the server has been told to cancel a query.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection that is asked something until [`Connection::answered`]. Dropped before that, by a
/// client that left or after a deadline, its query is cancelled unless it ends by itself.
pub(crate) struct Connection {
    /// Gone only after `answered` or `drop`.
    object: Option<Object>,
    tls: Option<MakeRustlsConnect>,
}

impl Connection {
    pub(super) fn of(object: Object, tls: Option<MakeRustlsConnect>) -> Self {
        Self {
            object: Some(object),
            tls,
        }
    }

    /// Takes the answer, and gives the connection back or ends it.
    pub(crate) fn answered<T>(mut self, answer: Result<T, Error>) -> Result<T, Error> {
        match &answer {
            // The server still works on it: dropping cancels it.
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
            runtime.spawn(settle(object, self.tls.take()));
        }
    }
}

/// Gives the connection back once it is idle, or cancels what the server does for it.
async fn settle(object: Object, tls: Option<MakeRustlsConnect>) {
    // Answered after the query before it.
    if let Ok(Ok(())) = timeout(GRACE, object.batch_execute("")).await {
        return;
    }
    let token = object.cancel_token();
    let told = timeout(CANCEL_TIMEOUT, async {
        match tls {
            Some(tls) => token.cancel_query(tls).await,
            None => token.cancel_query(NoTls).await,
        }
    });
    if let Ok(Err(error)) = told.await {
        tracing::debug!(%error, "cannot cancel a query");
    }
    // The server may act on it after this query's end, and would then cancel the connection's next
    // one: there must be none.
    drop(Object::take(object));
}
