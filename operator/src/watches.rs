//! Watches of the API server, each with a backoff of its own, some of them with a store.

pub mod cache;
pub mod health;
pub mod listing;
mod relist;

use std::fmt::Debug;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use kube::api::ObjectMeta;
use kube::runtime::controller::Action;
use kube::runtime::reflector::{self, Store};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::backoff::{chance, spread};
use health::Probe;

/// A pass that decides by what was told begins when each of these is true. (`Store::wait_until_ready`
/// wakes only the last of several that wait.)
pub fn once_told<K, C, E, F>(
    told: Vec<watch::Receiver<bool>>,
    pass: impl Fn(Arc<K>, Arc<C>) -> F + Copy,
) -> impl FnMut(Arc<K>, Arc<C>) -> BoxFuture<'static, Result<Action, E>>
where
    F: Future<Output = Result<Action, E>> + Send + 'static,
{
    move |object, context| {
        let (pass, told) = (pass(object, context), told.clone());
        Box::pin(async move {
            for mut told in told {
                // An error would mean that no watch is left, and this pass about to be dropped.
                let _ = told.wait_for(|told| *told).await;
            }
            pass.await
        })
    }
}

/// What a watch tells, kept in a store.
pub struct Remembered<K: Resource<DynamicType = ()> + 'static> {
    /// All that it told.
    pub store: Store<K>,
    /// What changed, deletions too. Not what a list shows: that is told at its end, by `told`.
    pub changes: Changes<K>,
    /// Begins the watch anew.
    pub restart: Arc<Notify>,
    /// The lists with which it has begun so far.
    pub lists: Arc<Lists>,
}

/// Counts the lists with which a watch begins, the first and those after a break.
#[derive(Default)]
pub struct Lists {
    begun: AtomicU64,
    complete: AtomicU64,
}

impl Lists {
    /// How many were begun.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// The number of the last one that came to its end; 0 before.
    pub fn complete(&self) -> u64 {
        self.complete.load(Ordering::Acquire)
    }

    fn note<K>(&self, event: &watcher::Event<K>) {
        match event {
            watcher::Event::Init => drop(self.begun.fetch_add(1, Ordering::AcqRel)),
            watcher::Event::InitDone => self.complete.store(self.begun(), Ordering::Release),
            _ => {}
        }
    }
}

/// Watches, and remembers; `told` is set once that is complete.
pub fn remembered<K>(
    api: Api<K>,
    config: watcher::Config,
    told: watch::Sender<bool>,
    probe: Probe,
) -> Remembered<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let (restart, lists) = (Arc::new(Notify::new()), Arc::<Lists>::default());
    let counted = Arc::clone(&lists);
    let events = begun_anew(api, config, Arc::clone(&restart))
        .modify(|object| make_small(object.meta_mut()));
    let changes = relist::with_lost_deletions(events, store.clone())
        .reflect(writer)
        .inspect(move |event| {
            probe.note(event, Instant::now());
            if let Ok(event) = event {
                counted.note(event);
            }
            if matches!(event, Ok(watcher::Event::InitDone)) {
                told.send_replace(true);
            }
        });
    let changes = one_by_one(changes).boxed();
    Remembered {
        store,
        changes,
        restart,
        lists,
    }
}

/// What changed besides what lists show: behind passes over 10 000 listed objects, one that changes
/// would wait for seconds.
fn one_by_one<K>(
    events: impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send
where
    K: Send,
{
    let is_listed = |event: &Result<_, _>| matches!(event, Ok(watcher::Event::InitApply(_)));
    events
        .filter(move |event| ready(!is_listed(event)))
        .touched_objects()
}

/// Thousands of them are remembered.
fn make_small(meta: &mut ObjectMeta) {
    // Half of an object's memory, and never looked at. Absent in a PUT it stays as it is.
    meta.managed_fields = None;
    // As decoded, each has room for four and holds one.
    meta.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
    meta.owner_references
        .iter_mut()
        .for_each(Vec::shrink_to_fit);
}

/// Changed objects.
pub type Changes<K> = BoxStream<'static, Result<K, watcher::Error>>;

/// Changed objects, nothing remembered.
pub fn changes<K>(api: Api<K>, config: watcher::Config, probe: Probe) -> Changes<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    begun_anew(api, config, Arc::default())
        .inspect(move |event| probe.note(event, Instant::now()))
        .touched_objects()
        .boxed()
}

/// A watch that begins with a list again when `restart` says so, or when the API server refuses it
/// because it has forgotten the time since which it asks: kube would ask for the same time again.
fn begun_anew<K>(
    api: Api<K>,
    config: watcher::Config,
    restart: Arc<Notify>,
) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let refused = Arc::clone(&restart);
    let watch = move || {
        let restart = Arc::clone(&restart);
        watcher(api.clone(), config.clone()).take_until(async move { restart.notified().await })
    };
    let events = stream::repeat_with(watch).flatten();
    events.backoff(Patience::default()).inspect(move |event| {
        let forgotten = matches!(
            event,
            Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) if status.code == 410
        );
        if forgotten {
            refused.notify_one();
        }
    })
}

/// Between two tries of a watch, twice as long each time up to five seconds. kube's default goes to
/// thirty, and a restarted API server is back within a few.
#[derive(Default)]
pub struct Patience {
    failures: u32,
}

impl Iterator for Patience {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = Duration::from_millis(250) * 2_u32.pow(self.failures.min(5));
        self.failures += 1;
        Some(spread(pause.min(Duration::from_secs(5)), chance()))
    }
}

impl Backoff for Patience {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

/// For a controller over watches that have their own patience: kube's default would hold all of them
/// up for each one's failure.
pub struct NoPause;

impl Iterator for NoPause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}

impl Backoff for NoPause {
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use watcher::Event;

    use super::*;

    #[tokio::test]
    async fn what_a_list_shows_is_not_told_one_by_one() {
        let list = [Event::Init, Event::InitApply(1), Event::InitApply(2)];
        let lost = [Event::Delete(3), Event::InitDone];
        let later = [Event::Apply(2), Event::Delete(1)];
        let events = list.into_iter().chain(lost).chain(later);
        let changes = one_by_one(stream::iter(events.map(Ok)));
        let changes: Vec<i32> = changes
            .filter_map(async |object| object.ok())
            .collect()
            .await;
        assert_eq!(changes, [3, 2, 1]);
    }

    #[test]
    fn patience_grows_to_five_seconds_give_or_take_a_quarter_and_begins_anew() {
        let around = |millis: u64| {
            let pause = Duration::from_millis(millis);
            pause * 3 / 4..pause * 5 / 4
        };
        let mut patience = Patience::default();
        for millis in [250, 500, 1000, 2000, 4000, 5000, 5000] {
            assert!(
                patience
                    .next()
                    .is_some_and(|pause| around(millis).contains(&pause))
            );
        }
        patience.reset();
        assert!(
            patience
                .next()
                .is_some_and(|pause| around(250).contains(&pause))
        );
    }
}
