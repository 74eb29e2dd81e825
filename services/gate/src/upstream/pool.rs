//! Idle connections to one service, the most recently used first.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;

/// Longest idle time, shorter than the 95 s after which our services close an idle connection.
const MAX_IDLE: Duration = Duration::from_secs(30);
/// Largest age. A connection stays with one pod; a new one may reach a new pod.
const MAX_AGE: Duration = Duration::from_secs(30);
/// Largest number of idle connections: the 64 with which the gate is measured.
const MAX_SIZE: usize = 64;

/// Idle connections. The lock is never contended: a pool belongs to one worker thread.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Idle>>);

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

impl Idle {
    fn is_good(&self, now: Instant) -> bool {
        now < self.since + MAX_IDLE
            && now < self.connection.opened + MAX_AGE
            && !self.connection.is_closed()
    }
}

impl Pool {
    /// Takes the connection that was used last, if one is still usable at `now`.
    pub(super) fn take(&self, now: Instant) -> Option<Connection> {
        let mut idle = self.lock();
        while let Some(entry) = idle.pop() {
            if entry.is_good(now) {
                return Some(entry.connection);
            }
        }
        None
    }

    /// Closes all connections without an answer since `sent`, the time of a request whose connection turned out to be
    /// lost: they may end at the same node. The others do not.
    pub(super) fn close_unheard_since(&self, sent: Instant) {
        self.lock().retain(|idle| idle.since >= sent);
    }

    /// Keeps a connection whose answer has been read; too old ones and those beyond the bound are closed.
    pub(super) fn put(&self, mut connection: Connection, now: Instant) {
        let mut idle = self.lock();
        if idle.len() < MAX_SIZE && now < connection.opened + MAX_AGE {
            connection.reused = true;
            idle.push(Idle {
                connection,
                since: now,
            });
        }
    }

    /// Closes connections that are too old or idle for too long, and those whose service has closed its side.
    pub(super) fn sweep(&self, now: Instant) {
        self.lock().retain(|entry| entry.is_good(now));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
