//! Last use of each key and number of requests of each account: recorded by every request with a valid key, written to
//! Redis in batches.
//!
//! Each worker records separately: memory that two cores write moves between their caches.

mod buffer;

use std::convert::Infallible;
use std::mem;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;
use water_domain::Timestamp;
use water_keystore::usage::UnsentUsage;
use water_keystore::{Record, Usage};
use water_runtime::telemetry::chain;

use buffer::{UsageBuffer, by_account};

/// Interval of the batches: the status shows last use by ten minutes, and a gate that dies loses at most one interval.
pub const EVERY: Duration = Duration::from_secs(15);

/// Uses that one worker has recorded since the last batch.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<UsageBuffer>>);

/// Writes the uses of all workers.
#[derive(Debug)]
pub struct LastUse {
    usage: Usage,
    every: Duration,
    workers: Vec<Notes>,
    /// Held while a batch is being written, so that the last one waits for the one before.
    writing: tokio::sync::Mutex<()>,
}

impl LastUse {
    /// Makes the records of so many workers, to be written at this interval.
    pub fn new(usage: Usage, every: Duration, workers: NonZeroUsize) -> Self {
        Self {
            usage,
            every,
            workers: (0..workers.get()).map(|_| Notes::default()).collect(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the records of one worker, by its index.
    pub fn notes(&self, worker: usize) -> Notes {
        self.workers[worker].clone()
    }

    /// Writes batch after batch while it is polled.
    pub async fn run(&self) -> Infallible {
        loop {
            sleep(self.every).await;
            self.write().await;
        }
    }

    /// Writes the uses since the last batch; those that Redis has certainly not counted are kept for the next one.
    pub async fn write(&self) {
        let _alone = self.writing.lock().await;
        // Requests wait for the lock, so nothing is sorted while it is held.
        let noted = self
            .workers
            .iter()
            .map(|notes| mem::take(&mut *notes.noted()));
        let uses = by_account(noted);
        if uses.is_empty() {
            return;
        }
        let keys: Vec<_> = uses.iter().flat_map(|used| used.keys.clone()).collect();
        let accounts = uses.len();
        let (error, kept) = match self.usage.write_last_uses(&keys).await {
            Err(error) => (error, uses),
            Ok(()) => match self.usage.add(uses).await {
                Err(UnsentUsage { error, uses }) => (error, uses),
                Ok(()) => return,
            },
        };
        warn!(
            error = chain(&error),
            keys = keys.len(),
            accounts,
            kept = kept.len(),
            "last uses and usage could not be written; what Redis has not counted is kept for the next time"
        );
        self.workers[0].noted().put_back(kept);
    }
}

impl Notes {
    /// Records a request with the key of this record at `now`, which is Redis' time; `accepted` is the limiter's
    /// decision, if it was asked.
    pub fn note(&self, record: &Record, accepted: Option<bool>, now: Timestamp) {
        self.noted()
            .note(&record.account, &record.key_id, accepted, now);
    }

    /// Locks the records. They are valid between any two statements: after a panic under the lock nothing needs repair.
    fn noted(&self) -> MutexGuard<'_, UsageBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;
    use std::thread;

    use anyhow::ensure;
    use water_harness::{Redis, wait_until};
    use water_keystore::UtcDay;
    use water_keystore::connection::Purpose;
    use water_kit::{Key, KeyStore, SOON};

    use super::*;

    fn usage(store: &KeyStore) -> Usage {
        Usage::new(store.connect(Purpose::Directory), store.instance.clone())
    }

    fn last_use(store: &KeyStore, every: Duration) -> LastUse {
        LastUse::new(usage(store), every, NonZeroUsize::MIN)
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    async fn shows(store: &KeyStore, key: &Key, moment: Timestamp) {
        let directory = store.directory();
        let shown = async || {
            let shown = directory.last_used(from_ref(&key.record.key_id)).await?;
            ensure!(shown == [Some(moment)], "{shown:?}");
            Ok(())
        };
        wait_until("the last use", SOON, shown).await.unwrap();
    }

    /// Writes until it shows: on a busy machine Redis may be late.
    async fn written(last_use: &LastUse, store: &KeyStore, key: &Key, moment: Timestamp) {
        let directory = store.directory();
        let shown = async || {
            last_use.write().await;
            let shown = directory.last_used(from_ref(&key.record.key_id)).await?;
            ensure!(shown == [Some(moment)], "{shown:?}");
            Ok(())
        };
        wait_until("the last use", SOON, shown).await.unwrap();
    }

    #[tokio::test]
    async fn what_was_noted_is_written_batch_after_batch() {
        let (store, key) = (KeyStore::new().await, Key::new());
        let last_use = Arc::new(last_use(&store, Duration::from_millis(10)));
        let running = Arc::clone(&last_use);
        let running = tokio::spawn(async move { match running.run().await {} });
        for moment in [at(1_000), at(2_000)] {
            last_use.notes(0).note(&key.record, None, moment);
            shows(&store, &key, moment).await;
        }
        running.abort();
    }

    #[tokio::test]
    async fn requests_are_counted_once_though_redis_was_away_in_between() {
        let redis = Redis::start().await.unwrap();
        let (store, key) = (KeyStore::on(&redis), Key::new());
        let (usage, last_use) = (usage(&store), last_use(&store, EVERY));
        let note = |accepted| {
            last_use
                .notes(0)
                .note(&key.record, Some(accepted), at(1_000))
        };
        note(true);
        written(&last_use, &store, &key, at(1_000)).await;
        note(true);
        note(false);
        redis.kill().unwrap();
        last_use.write().await;
        redis.start_again().await.unwrap();
        let again = async || {
            last_use.write().await;
            let (account, day) = (&key.record.account, UtcDay::from(at(1_000)));
            let shown = usage.days(account, day, 1).await?[0];
            // The server was killed: unsaved counts are lost, and must not return with the next batch.
            ensure!((shown.accepted, shown.limited) == (1, 1), "{shown:?}");
            let last = usage
                .last_uses(account, from_ref(&key.record.key_id), day)
                .await?;
            ensure!(last == [Some(at(1_000))], "{last:?}");
            Ok(())
        };
        wait_until("the kept counts", SOON, again).await.unwrap();
        shows(&store, &key, at(1_000)).await;
    }

    #[tokio::test]
    async fn a_panic_under_the_lock_ends_no_later_request() {
        let (store, key) = (KeyStore::new().await, Key::new());
        let last_use = last_use(&store, EVERY);
        let panicked = thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let notes = last_use.notes(0);
                let _held = notes.noted();
                panic!("while the notes are held");
            });
            holder.join().is_err()
        });
        assert!(panicked);
        last_use.notes(0).note(&key.record, None, at(1_000));
        written(&last_use, &store, &key, at(1_000)).await;
    }
}
