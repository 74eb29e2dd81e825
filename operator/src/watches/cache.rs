//! All objects of one kind, as a watch tells of them.

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::api::ObjectMeta;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use super::health::Health;
use super::listing::{Listing, Versions, behind, known, stuck};
use super::relist::with_lost_deletions;
use super::{Changes, begun_anew};
use crate::backoff::{chance, spread};
use crate::client::watching;

/// Between two comparisons with a list.
const COMPARED_EVERY: Duration = Duration::from_secs(600);
/// A watch is seconds behind a list at worst.
const STUCK_AFTER: Duration = Duration::from_secs(30);
/// A claim waits this long for a watch that is behind a list.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);
/// Between two looks at the store.
const LOOK: Duration = Duration::from_millis(20);

pub struct Cache<K: Resource<DynamicType = ()> + 'static> {
    pub store: Store<K>,
    /// Whether the watch has told of all.
    pub told: watch::Receiver<bool>,
    kind: &'static str,
    api: Api<K>,
    labels: Option<&'static str>,
    restart: Arc<Notify>,
    lists: Arc<Lists>,
    /// Whether the first list was given up for another.
    gave_up_first: AtomicBool,
}

/// Counts how often the watch was begun anew, and of which of these a list was complete.
#[derive(Default)]
struct Lists {
    begun: AtomicU64,
    complete: AtomicU64,
}

impl Lists {
    fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// The latest whose list came to its end; 0 before.
    fn complete(&self) -> u64 {
        self.complete.load(Ordering::Acquire)
    }

    /// Before the list is asked for: nothing that it shows was read earlier.
    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::AcqRel);
    }

    fn note<K>(&self, event: &watcher::Event<K>) {
        if matches!(event, watcher::Event::InitDone) {
            self.complete.store(self.begun(), Ordering::Release);
        }
    }
}

impl<K> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// An empty cache, and the watch that fills it while its changes are taken.
    pub fn new(
        kind: &'static str,
        api: Api<K>,
        labels: Option<&'static str>,
        health: &Health,
    ) -> (Self, Changes<K>) {
        let config = labels
            .into_iter()
            .fold(watching(), |config, labels| config.labels(labels));
        let (store, writer) = reflector::store();
        let (tell, told) = watch::channel(false);
        let (restart, lists) = (Arc::<Notify>::default(), Arc::<Lists>::default());
        let (counted, probe) = (Arc::clone(&lists), health.watch(kind));
        let begun = Arc::clone(&lists);
        let begin = move || begun.begin();
        let events = begun_anew(api.clone(), config, Arc::clone(&restart), begin)
            .modify(|object| make_small(object.meta_mut()));
        let changes = with_lost_deletions(events, store.clone())
            .reflect(writer)
            .inspect(move |event| {
                probe.note(event, Instant::now());
                if let Ok(event) = event {
                    counted.note(event);
                }
                if matches!(event, Ok(watcher::Event::InitDone)) {
                    tell.send_replace(true);
                }
            });
        let cache = Self {
            store,
            told,
            kind,
            api,
            labels,
            restart,
            lists,
            gave_up_first: AtomicBool::new(false),
        };
        (cache, one_by_one(changes).boxed())
    }

    /// Compares the store with a list now and then. A watch that goes on without telling of changes is begun
    /// anew.
    pub async fn compare(&self) -> Infallible {
        loop {
            sleep(spread(COMPARED_EVERY, chance())).await;
            let kind = self.kind;
            match self.missed().await {
                Ok(0) => {}
                Ok(objects) => {
                    warn!(
                        kind,
                        objects, "a watch has missed changes and is begun anew"
                    );
                    self.begin_anew();
                }
                Err(error) => debug!(kind, error = %error, "cannot compare a watch with a list"),
            }
        }
    }

    async fn missed(&self) -> kube::Result<usize> {
        let first = self.behind().await?;
        if first.is_empty() {
            return Ok(0);
        }
        sleep(STUCK_AFTER).await;
        Ok(stuck(&first, &self.behind().await?))
    }

    async fn behind(&self) -> kube::Result<Versions> {
        let listed = Listing::of(&self.api, self.labels).await?;
        Ok(behind(&listed.versions, &known(&self.store)))
    }

    /// Returns once the store includes a list that began after this was called. A watch that stays
    /// behind it is begun anew: its connection may be dead without either end knowing. So is one that
    /// told of what no list shows any more, because etcd was restored from an older state.
    pub async fn caught_up(&self) -> kube::Result<()> {
        if !*self.told.borrow() {
            // Once: a long list that is begun anew each time would never come to its end.
            if !self.gave_up_first.swap(true, Ordering::AcqRel) {
                self.listed_again().await;
                return Ok(());
            }
            self.filled().await;
        }
        loop {
            let before = known(&self.store);
            let listing = Listing::of(&self.api, self.labels).await?;
            let lost = listing.lost(before);
            if !lost.is_empty() {
                warn!(
                    kind = self.kind,
                    "a watch has told of what was lost and is begun anew"
                );
                self.begin_anew();
            }
            let settled = timeout(SETTLED_WITHIN, self.includes(&listing, &lost)).await;
            match settled {
                Ok(()) => return Ok(()),
                Err(_) if lost.is_empty() => {
                    warn!(
                        kind = self.kind,
                        "a watch is behind a list and is begun anew"
                    );
                    self.begin_anew();
                }
                Err(_) => {}
            }
        }
    }

    pub async fn filled(&self) {
        // An error would mean that the watch is gone, and with it all that could be told.
        let _ = self.told.clone().wait_for(|told| *told).await;
    }

    /// Gives up the first list, which was begun before, and waits for one that is begun now: a second list
    /// after it would take as long again.
    async fn listed_again(&self) {
        let before = self.lists.begun();
        self.begin_anew();
        while self.lists.complete() <= before {
            sleep(LOOK).await;
        }
    }

    /// Has the watch begin with a list again.
    pub fn begin_anew(&self) {
        self.restart.notify_one();
    }

    /// Waits until the store includes a list, and no object as it was in a state that is lost.
    async fn includes(&self, listing: &Listing, lost: &Versions) {
        loop {
            let known = known(&self.store);
            let is_lost = |(object, version): (_, _)| lost.get(object) == Some(version);
            if listing.is_included_in(&known) && !known.iter().any(is_lost) {
                return;
            }
            sleep(LOOK).await;
        }
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

#[cfg(test)]
mod tests {
    use futures::stream;
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
}
