//! When each key was last used and how many requests each account made: noted by every request with
//! a good key, told to Redis in batches.
//!
//! Each worker notes for itself: memory that two cores write moves between their caches.

mod noted;

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

use noted::{Noted, by_account};

/// Between two batches: the status shows last use by ten minutes, and a gate that dies loses no more
/// than this.
pub const EVERY: Duration = Duration::from_secs(15);

/// What one worker has noted since the last batch.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Noted>>);

/// Tells what all workers have noted.
#[derive(Debug)]
pub struct LastUse {
    usage: Usage,
    every: Duration,
    workers: Vec<Notes>,
    /// Held while a batch is under way, so that the last one waits for the one before.
    writing: tokio::sync::Mutex<()>,
}

impl LastUse {
    /// Tells Redis as often as `every` says what so many workers have noted.
    pub fn new(usage: Usage, every: Duration, workers: NonZeroUsize) -> Self {
        Self {
            usage,
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

    /// Writes what was noted since the last time; what Redis has surely not counted stays for the next time.
    pub async fn write(&self) {
        let _alone = self.writing.lock().await;
        // Requests wait for the lock, so that nothing is sorted under it.
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
    /// A request with the key of this record came at `now`, which is Redis' time; `accepted` says
    /// what the limiter did, if it was asked.
    pub fn note(&self, record: &Record, accepted: Option<bool>, now: Timestamp) {
        self.noted()
            .note(&record.account, &record.key_id, accepted, now);
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
    use water_domain::KeyId;
    use water_harness::{Redis, wait_until};
    use water_keystore::connection::Purpose;
    use water_keystore::{ConnectionSettings, Directory, Instance, KeyState, UtcDay};

    use super::*;

    /// Longer than a busy machine takes.
    const SOON: Duration = Duration::from_secs(60);

    struct Site {
        redis: Redis,
        directory: Directory,
        usage: Usage,
        last_use: Arc<LastUse>,
    }

    impl Site {
        async fn start(every: Duration) -> Self {
            let redis = Redis::start().await.unwrap();
            let settings = ConnectionSettings::new(&redis.url(), None).unwrap();
            let instance = Instance::new("water", "last-use").unwrap();
            let connect = || settings.connect(Purpose::Directory);
            let usage = Usage::new(connect(), instance.clone());
            let last_use = LastUse::new(usage.clone(), every, NonZeroUsize::MIN);
            Self {
                directory: Directory::new(connect(), instance),
                usage,
                last_use: Arc::new(last_use),
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

    fn record() -> Record {
        Record {
            account: "acme".parse().unwrap(),
            plan: "Enterprise".parse().unwrap(),
            state: KeyState::Active,
            key_id: key(),
            not_before: None,
            expires: None,
            retires: None,
            revision: 0,
        }
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
            site.last_use.notes(0).note(&record(), None, moment);
            site.shows(&key(), moment).await;
        }
        running.abort();
    }

    #[tokio::test]
    async fn an_earlier_use_told_later_changes_nothing() {
        let site = Site::start(EVERY).await;
        for moment in [at(2_000), at(1_000)] {
            site.last_use.notes(0).note(&record(), None, moment);
            site.last_use.write().await;
        }
        site.shows(&key(), at(2_000)).await;
    }

    #[tokio::test]
    async fn a_batch_that_redis_did_not_take_goes_with_the_next() {
        let site = Site::start(EVERY).await;
        site.last_use.notes(0).note(&record(), None, at(1_000));
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
    async fn requests_are_counted_once_though_redis_was_away_in_between() {
        let site = Site::start(EVERY).await;
        let note = |accepted| {
            site.last_use
                .notes(0)
                .note(&record(), Some(accepted), at(1_000))
        };
        note(true);
        site.last_use.write().await;
        note(true);
        note(false);
        site.redis.kill().unwrap();
        site.last_use.write().await;
        site.redis.start_again().await.unwrap();
        let again = async || -> Result<()> {
            site.last_use.write().await;
            let (account, day) = (record().account, UtcDay::of(at(1_000)));
            let shown = site.usage.days(&account, day, 1).await?[0];
            ensure!(shown.limited == 1, "{shown:?}");
            // The server was killed: what it had not saved is gone, and must not come back with the
            // next batch.
            ensure!(shown.accepted == 1, "{shown:?}");
            let last = site.usage.last_uses(&account, &[key()], day).await?;
            ensure!(last == [Some(at(1_000))], "{last:?}");
            Ok(())
        };
        wait_until("the kept counts", SOON, again).await.unwrap();
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
        site.last_use.notes(0).note(&record(), None, at(1_000));
        site.last_use.write().await;
        site.shows(&key(), at(1_000)).await;
    }

    #[test]
    fn a_gate_tells_every_fifteen_seconds() {
        assert_eq!(EVERY.as_secs(), 15);
    }
}
