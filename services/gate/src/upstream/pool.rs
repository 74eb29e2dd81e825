//! Idle connections to one service, the most recently used first.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;

/// Shorter than the 75 s after which our services close an idle connection.
const MAX_IDLE: Duration = Duration::from_secs(30);
/// A connection stays with one pod; after this a new one may find a new pod.
const MAX_AGE: Duration = Duration::from_secs(30);
/// As many as the 64 connections that the gate is measured with.
const MAX_SIZE: usize = 64;

/// The idle connections. The lock is never contended: a pool belongs to one worker thread.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Idle>>);

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

impl Pool {
    /// The connection that was used last, if one is still good at `now`.
    pub(super) async fn take(&self, now: Instant) -> Option<Connection> {
        while let Some(connection) = self.pop(now) {
            if let Some(ready) = connection.reuse().await {
                return Some(ready);
            }
        }
        None
    }

    /// Keeps a connection whose answer has been read; too old ones and those beyond the bound are
    /// closed.
    pub(super) fn put(&self, connection: Connection, now: Instant) {
        let mut idle = self.lock();
        if idle.len() < MAX_SIZE && !connection.is_closed() && now < connection.opened + MAX_AGE {
            idle.push(Idle {
                connection,
                since: now,
            });
        }
    }

    fn pop(&self, now: Instant) -> Option<Connection> {
        let mut idle = self.lock();
        let is_good = |entry: &Idle| {
            now < entry.since + MAX_IDLE
                && now < entry.connection.opened + MAX_AGE
                && !entry.connection.is_closed()
        };
        // The oldest are first: what nobody has needed for a while is closed here.
        let expired = idle.iter().take_while(|entry| !is_good(entry)).count();
        idle.drain(..expired);
        while let Some(entry) = idle.pop() {
            if is_good(&entry) {
                return Some(entry.connection);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
