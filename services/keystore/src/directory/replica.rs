//! A gate's copy of the key directory: loaded once, kept up by the feed, read by every request without a round trip.
//!
//! A copy is only ever replaced by a later complete one. While Redis is away, wiped or doubtful, the copy that is there
//! stays, and [`Replica::status`] reports how old it may be.

mod status;
mod view;

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::watch;
use tokio::time::Instant;
use water_domain::Timestamp;

use status::Progress;
pub use status::ReplicaStatus;
pub use view::View;

use super::Directory;
use super::clock::Clock;
use super::feed::{FeedFailure, follow, round};
use super::lease::Renewal;
use super::load::{DirectoryCopy, feed_end, load};
use super::scripts::LEASE;
use super::snapshot::Snapshot;
use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

/// Interval at which everything is loaded again, whatever the feed says: what no check noticed ends here.
const RELOAD_EVERY: Duration = Duration::from_secs(600);
const RENEW: &str = "renew the lease";
/// Pause after a failure. Two seconds after Redis is back everything shall be exact again.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Identity of this gate in its lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GateIdentity {
    /// The pod's name.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// Time for which the gate serves from memory after its last renewal.
    pub grace: Duration,
}

/// The copy and its upkeep. One task [`Replica::run`]s it; any thread reads.
#[derive(Debug)]
pub struct Replica {
    directory: Directory,
    identity: GateIdentity,
    /// Copy, which only `run` replaces; `None` until the first complete load.
    snapshot: ArcSwapOption<Snapshot>,
    clock: Clock,
    /// Counts replacements of the copy; the limiter forgets its refusals with each.
    changes: Arc<AtomicU64>,
    /// The last renewal that was tried; sent by `run` only, one after the other.
    renewal: Mutex<Renewal>,
    /// Number of gates at the last renewal; 0 before the first.
    gates: Arc<AtomicU32>,
    progress: Mutex<Progress>,
    complete: watch::Sender<bool>,
    reload_every: Duration,
}

impl Replica {
    /// A replica without a copy; `connection` should be its own, for the feed blocks on it
    /// ([`crate::connection::Purpose::Directory`]).
    pub fn new(connection: Connection, instance: Instance, identity: GateIdentity) -> Self {
        Self {
            directory: Directory::new(connection, instance),
            identity,
            snapshot: ArcSwapOption::empty(),
            clock: Clock::new(Instant::now()),
            changes: Arc::default(),
            renewal: Mutex::default(),
            gates: Arc::default(),
            progress: Mutex::default(),
            complete: watch::Sender::new(false),
            reload_every: RELOAD_EVERY,
        }
    }

    /// Loads everything again this often, instead of every ten minutes.
    pub fn reloading_every(mut self, period: Duration) -> Self {
        self.reload_every = period;
        self
    }

    /// The state to judge one request by; `None` while there is no complete copy.
    pub fn view(&self) -> Option<View> {
        let snapshot = self.snapshot.load();
        let now = self.now()?;
        snapshot.is_some().then_some(View { snapshot, now })
    }

    /// Redis' time: its last reading, carried on by the monotonic clock. `None` before the first.
    pub fn now(&self) -> Option<Timestamp> {
        self.clock.at(Instant::now())
    }

    /// A number that grows with every change of a key or plan.
    pub fn changes(&self) -> Arc<AtomicU64> {
        self.changes.clone()
    }

    /// Number of gates that may be serving, this one too, as of the last renewal; 0 before the first.
    pub fn live_gates(&self) -> Arc<AtomicU32> {
        self.gates.clone()
    }

    /// Time since the lease was last renewed, by the monotonic clock; `None` before the first load. A gate serves from
    /// memory no longer than its grace after that, since nobody waits for it any longer. A renewal after that counts
    /// only once the copy has caught up with it.
    pub fn since_renewal(&self) -> Option<Duration> {
        self.progress().since_renewal()
    }

    /// Returns once there is a complete copy and the feed has replied.
    pub async fn completed(&self) {
        let mut complete = self.complete.subscribe();
        let seen = complete.wait_for(|complete| *complete).await;
        seen.expect("the sender lives as long as this replica");
    }

    /// Status of the copy.
    pub fn status(&self) -> ReplicaStatus {
        let snapshot = self.snapshot.load();
        self.progress().status(snapshot.as_deref())
    }

    /// Keeps the copy up for as long as it is polled. Never returns: every failure is reported by [`Replica::status`]
    /// and one log line, and tried again.
    pub async fn run(&self) -> Infallible {
        let mut after: Option<String> = None;
        loop {
            let outcome = match after.take() {
                None => self.reload().await.map_err(|failure| (failure, None)),
                Some(after) => self.follow(after).await,
            };
            after = match outcome {
                Ok(after) => after,
                Err((failure, after)) => {
                    self.set_back(&failure, after.is_none());
                    tokio::time::sleep(RETRY_AFTER).await;
                    after
                }
            };
        }
    }

    /// Gives the lease back, so that no revocation waits for this gate. To be called once every
    /// request is drained and `run` is no longer polled.
    pub async fn leave(&self) -> Result<(), StoreError> {
        let Directory {
            connection,
            instance,
        } = &self.directory;
        let mut command = redis::cmd("HDEL");
        command.arg(instance.gates()).arg(&self.identity.pod);
        connection.run("give the lease back", &command).await
    }

    /// Loads everything. The lease is written before the first shard is read: a deletion that this load may miss must
    /// know that it has to wait for this gate. The feed is read before that, since a gate that cannot read it must not
    /// renew.
    async fn reload(&self) -> Result<Option<String>, FeedFailure> {
        feed_end(&self.directory).await?;
        self.replied();
        self.renew().await?;
        let DirectoryCopy { snapshot, after } = load(&self.directory).await?;
        tracing::info!(
            directory.keys = snapshot.keys,
            directory.generation = snapshot.generation,
            directory.seq = snapshot.seq,
            "loaded the key directory"
        );
        self.publish(snapshot);
        self.progress().loaded(Instant::now());
        self.complete.send_replace(true);
        Ok(Some(after))
    }

    /// Reads rounds of the feed until a reload is due, which `None` reports. A failure is returned with the feed's
    /// entry from which to continue.
    async fn follow(
        &self,
        mut after: String,
    ) -> Result<Option<String>, (FeedFailure, Option<String>)> {
        while self.progress().is_younger_than(self.reload_every) {
            // The lease, which acknowledges what has just been applied, precedes the next round, so that it is renewed
            // each second. It is not while the feed is silent for long: revocations that do not arrive here would be
            // waited for without end.
            let is_heard = self.progress().is_heard();
            let read = async {
                if is_heard {
                    self.renew().await?;
                }
                let wait = self.progress().may_wait();
                round(&self.directory, &after, wait).await
            };
            let read = match read.await {
                Ok(read) => read,
                // A failure of Redis says nothing about the copy: the next round's checks do.
                Err(failure @ FeedFailure::Store(_)) => return Err((failure, Some(after))),
                Err(failure) => return Ok(self.needs_reload(&failure)),
            };
            self.replied();
            let last = read.entries.last().map(|entry| entry.id.clone());
            let snapshot = self.snapshot.load_full().expect("a load came before");
            match follow(&snapshot, read) {
                Ok(None) => {}
                Ok(Some(next)) => self.publish(next),
                Err(failure) => return Ok(self.needs_reload(&failure)),
            }
            self.progress().caught_up();
            after = last.unwrap_or(after);
        }
        Ok(None)
    }

    fn replied(&self) {
        if self.progress().replied(Instant::now()) {
            tracing::info!("the feed of the key directory replies again");
        }
    }

    fn needs_reload(&self, failure: &FeedFailure) -> Option<String> {
        self.set_back(failure, true);
        None
    }

    fn publish(&self, snapshot: Snapshot) {
        self.snapshot.store(Some(Arc::new(snapshot)));
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Renews the lease with what is served, and reads Redis' clock on the way. No load runs meanwhile, so
    /// that a renewal without a copy says that the next load reads what was there before.
    async fn renew(&self) -> Result<(), StoreError> {
        // The first one of a process is refused: its reply says when the process begins.
        for _ in 0..2 {
            if self.try_to_renew().await? {
                return Ok(());
            }
        }
        Err(StoreError::unexpected(RENEW))
    }

    /// Whether the lease was renewed; else this process has begun after the one that was.
    async fn try_to_renew(&self) -> Result<bool, StoreError> {
        let renewal = {
            let mut renewal = self.renewal.lock().unwrap_or_else(PoisonError::into_inner);
            renewal.count += 1;
            *renewal
        };
        let snapshot = self.snapshot.load_full();
        let (generation, seq) = snapshot.map_or((0, 0), |served| (served.generation, served.seq));
        // Read by people only.
        let mode = if generation == 0 {
            "loading"
        } else {
            "serving"
        };
        let mut call = LEASE.key(self.directory.instance.gates());
        call.arg(&self.identity.pod)
            .arg(&self.identity.uid)
            .arg(generation)
            .arg(seq)
            .arg(self.identity.grace.as_millis() as u64)
            .arg(mode)
            .arg(renewal.start)
            .arg(renewal.count);
        let sent = Instant::now();
        let (seconds, micros, gates, begun): (i64, i64, u32, u64) =
            self.directory.connection.run_script(RENEW, &call).await?;
        let received = Instant::now();
        if begun > 0 {
            let now = u64::try_from(seconds * 1000 + micros / 1000).unwrap_or_default();
            let start = now.max(begun + 1);
            let mut renewal = self.renewal.lock().unwrap_or_else(PoisonError::into_inner);
            *renewal = Renewal { start, count: 0 };
            return Ok(false);
        }
        self.clock
            .set(seconds * 1000 + micros / 1000, sent, received);
        self.gates.store(gates, Ordering::Release);
        // The moment before it was sent: the server may have counted from then.
        self.progress().renewed(sent, received, self.identity.grace);
        Ok(true)
    }

    fn set_back(&self, failure: &FeedFailure, needs_reload: bool) {
        if self.progress().set_back(failure, needs_reload) {
            tracing::warn!(error = %failure, "the copy of the key directory cannot be kept up");
        }
    }

    /// Valid between any two statements: after a panic under the lock there is nothing to repair.
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::connection::{ConnectionSettings, Purpose};

    #[tokio::test]
    async fn a_panic_under_the_lock_is_not_repeated_by_every_request() {
        let nowhere = ConnectionSettings::new("redis://127.0.0.1:1", None).unwrap();
        let identity = GateIdentity {
            pod: "gate-1".into(),
            uid: "uid".into(),
            grace: Duration::from_secs(120),
        };
        let connection = nowhere.connect(Purpose::Directory);
        let instance = "water.water-data".parse().unwrap();
        let replica = Replica::new(connection, instance, identity);
        let panicked = thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _held = replica.progress();
                panic!("while the progress is held");
            });
            holder.join().is_err()
        });
        assert!(panicked);
        assert_eq!(replica.since_renewal(), None);
    }
}
