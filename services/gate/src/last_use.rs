//! When each key was last used: noted by every request with a good key, told to Redis in batches.
//!
//! Each worker notes for itself: memory that two cores write moves between their caches.

mod noted;

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;
use water_domain::{KeyId, Timestamp};
use water_keystore::LastUses;
use water_runtime::telemetry::chain;

use noted::Noted;

/// Between two batches: the status shows last use by ten minutes, and a gate that dies loses no more
/// than this.
pub const EVERY: Duration = Duration::from_secs(15);

/// What one worker has noted since the last batch.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Noted>>);

/// Tells what all workers have noted.
#[derive(Debug)]
pub struct LastUse {
    store: LastUses,
    every: Duration,
    workers: Vec<Notes>,
    /// Held while a batch is under way, so that the last one waits for the one before.
    writing: tokio::sync::Mutex<()>,
}

impl LastUse {
    /// Tells `store` as often as `every` says what so many workers have noted.
    pub fn new(store: LastUses, every: Duration, workers: NonZeroUsize) -> Self {
        Self {
            store,
            every,
            workers: (0..workers.get()).map(|_| Notes::default()).collect(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Where one worker notes, by its index.
    pub fn notes(&self, worker: usize) -> Notes {
        self.workers[worker].clone()
    }

    /// Writes batch after batch for as long as it is polled.
    pub async fn run(&self) -> Infallible {
        loop {
            sleep(self.every).await;
            self.write().await;
        }
    }

    /// Writes what was noted since the last time; what cannot be written stays for the next time.
    pub async fn write(&self) {
        let _alone = self.writing.lock().await;
        let taken = self.workers.iter().flat_map(|notes| notes.noted().take());
        let batch: Vec<_> = taken.collect();
        if batch.is_empty() {
            return;
        }
        if let Err(error) = self.store.write(&batch).await {
            warn!(
                error = chain(&error),
                keys = batch.len(),
                "last uses could not be written; they are kept for the next time"
            );
            self.workers[0].noted().put_back(batch);
        }
    }
}

impl Notes {
    /// A request with this key came at `now`, which is Redis' time.
    pub fn note(&self, key: &KeyId, now: Timestamp) {
        self.noted().note(key, now);
    }

    /// Valid between any two statements: after a panic under the lock there is nothing to repair.
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anyhow::{Result, ensure};
    use water_harness::{Redis, wait_until};
    use water_keystore::connection::Purpose;
    use water_keystore::{ConnectionSettings, Directory, Instance};

    use super::*;

    /// Longer than a busy machine takes.
    const SOON: Duration = Duration::from_secs(20);

    struct Site {
        redis: Redis,
        directory: Directory,
        last_use: Arc<LastUse>,
    }

    impl Site {
        async fn start(every: Duration) -> Self {
            let redis = Redis::start().await.unwrap();
            let settings = ConnectionSettings::new(&redis.url(), None).unwrap();
            let instance = Instance::new("water", "last-use").unwrap();
            let connect = || settings.connect(Purpose::Directory);
            let store = LastUses::new(connect(), instance.clone());
            Self {
                directory: Directory::new(connect(), instance),
                last_use: Arc::new(LastUse::new(store, every, NonZeroUsize::MIN)),
                redis,
            }
        }

        async fn shows(&self, key: &KeyId, at: Timestamp) {
            let shown = async || -> Result<()> {
                let shown = self.directory.last_used(std::slice::from_ref(key)).await?;
                ensure!(shown == [Some(at)], "{shown:?}");
                Ok(())
            };
            wait_until("the last use", SOON, shown).await.unwrap();
        }
    }

    fn key() -> KeyId {
        "0123456789ab".parse().unwrap()
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    #[tokio::test]
    async fn what_was_noted_is_written_batch_after_batch() {
        let site = Site::start(Duration::from_millis(10)).await;
        let last_use = Arc::clone(&site.last_use);
        let running = tokio::spawn(async move { match last_use.run().await {} });
        for moment in [at(1_000), at(2_000)] {
            site.last_use.notes(0).note(&key(), moment);
            site.shows(&key(), moment).await;
        }
        running.abort();
    }

    #[tokio::test]
    async fn an_earlier_use_told_later_changes_nothing() {
        let site = Site::start(EVERY).await;
        for moment in [at(2_000), at(1_000)] {
            site.last_use.notes(0).note(&key(), moment);
            site.last_use.write().await;
        }
        site.shows(&key(), at(2_000)).await;
    }

    #[tokio::test]
    async fn a_batch_that_redis_did_not_take_goes_with_the_next() {
        let site = Site::start(EVERY).await;
        site.last_use.notes(0).note(&key(), at(1_000));
        site.redis.kill().unwrap();
        site.last_use.write().await;
        site.redis.start_again().await.unwrap();
        let again = async || -> Result<()> {
            site.last_use.write().await;
            let shown = site.directory.last_used(&[key()]).await?;
            ensure!(shown == [Some(at(1_000))], "{shown:?}");
            Ok(())
        };
        wait_until("the kept use", SOON, again).await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_under_the_lock_ends_no_later_request() {
        let site = Site::start(EVERY).await;
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let notes = site.last_use.notes(0);
                let _held = notes.noted();
                panic!("while the notes are held");
            });
            holder.join().is_err()
        });
        assert!(panicked);
        site.last_use.notes(0).note(&key(), at(1_000));
        site.last_use.write().await;
        site.shows(&key(), at(1_000)).await;
    }

    #[test]
    fn a_gate_tells_every_fifteen_seconds() {
        assert_eq!(EVERY.as_secs(), 15);
    }
}
