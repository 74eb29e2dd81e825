//! Cache of all objects of one kind, as a watch reports them.

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use super::health::Health;
use super::listing::{Listing, Versions, behind, known, stuck};
use super::relist::with_lost_deletions;
use super::trim::trim;
use super::{Changes, begun_anew};
use crate::backoff::{chance, spread};
use crate::client::watching;
use crate::conditions::Failure;
use crate::inquiry::Inquiry;

/// Interval between two comparisons with a list.
const COMPARED_EVERY: Duration = Duration::from_secs(600);
/// Pause after a comparison that failed.
const COMPARED_AGAIN: Duration = Duration::from_secs(60);
/// Pause before a watch that is behind a list is compared again: it is seconds behind at worst.
const STUCK_AFTER: Duration = Duration::from_secs(30);
/// Time for which a claim waits for a watch that is behind a list.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);
/// Interval between two checks of the store.
const LOOK: Duration = Duration::from_millis(20);

pub struct Cache<K: Resource<DynamicType = ()> + 'static> {
    pub store: Store<K>,
    /// Whether the watch has reported all objects.
    pub told: watch::Receiver<bool>,
    kind: &'static str,
    api: Api<K>,
    labels: Option<&'static str>,
    refused: OnRefusal,
    restart: Arc<Notify>,
    lists: Arc<Lists>,
    compared: Inquiry,
    /// Flag that is set once the first list was given up for another.
    gave_up_first: AtomicBool,
}

/// Meaning of a list that the API server refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnRefusal {
    /// Nothing is known until it allows one.
    Unknown,
    /// No object is this operator's business.
    Empty,
}

impl OnRefusal {
    fn is_empty(self, error: &kube::Error) -> bool {
        let is_refusal = |code| matches!(code, 403 | 404);
        self == Self::Empty && matches!(error, kube::Error::Api(status) if is_refusal(status.code))
    }

    /// Whether an event shows, or counts as, all that there is.
    fn is_whole<K>(self, event: &Result<watcher::Event<K>, watcher::Error>) -> bool {
        match event {
            Ok(event) => matches!(event, watcher::Event::InitDone),
            Err(
                watcher::Error::InitialListFailed(error)
                | watcher::Error::WatchStartFailed(error)
                | watcher::Error::WatchFailed(error),
            ) => self.is_empty(error),
            Err(_) => false,
        }
    }
}

/// Number of watches that were begun, and the last of them whose list was complete.
#[derive(Default)]
struct Lists {
    begun: AtomicU64,
    complete: AtomicU64,
}

impl Lists {
    fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// The latest watch whose list is complete; 0 before.
    fn complete(&self) -> u64 {
        self.complete.load(Ordering::Acquire)
    }

    /// Counts a watch before its list is asked for: nothing that it shows was read earlier.
    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::AcqRel);
    }

    fn complete_now(&self) {
        self.complete.store(self.begun(), Ordering::Release);
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
        refused: OnRefusal,
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
            .modify(|object| trim(object.meta_mut()));
        let changes = with_lost_deletions(events, store.clone())
            .reflect(writer)
            .inspect(move |event| {
                probe.note(event, Instant::now());
                if refused.is_whole(event) {
                    counted.complete_now();
                    // A refusal is news once.
                    let is_list = event.is_ok();
                    tell.send_if_modified(|told| !std::mem::replace(told, true) || is_list);
                }
            });
        let cache = Self {
            store,
            told,
            kind,
            api,
            labels,
            refused,
            restart,
            lists,
            compared: Inquiry::new(
                format!(
                    "the watch of {kind} cannot be compared with a list, so that nobody notices if it misses changes"
                ),
                &health.metrics,
            ),
            gave_up_first: AtomicBool::new(false),
        };
        (cache, one_by_one(changes).boxed())
    }

    /// Compares the store with a list now and then. A watch that goes on without reporting changes is begun again.
    pub async fn compare(&self) -> Infallible {
        let mut pause = COMPARED_EVERY;
        loop {
            sleep(spread(pause, chance())).await;
            let missed = self.missed().await;
            self.compared.note(&missed);
            pause = if missed.is_ok() {
                COMPARED_EVERY
            } else {
                COMPARED_AGAIN
            };
            if let Ok(objects @ 1..) = missed {
                let kind = self.kind;
                warn!(
                    kind,
                    objects, "a watch has missed changes and is begun anew"
                );
                self.begin_anew();
            }
        }
    }

    /// The last comparison, if that failed.
    pub fn uncompared(&self) -> Option<Failure> {
        self.compared.failure()
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
        let listed = self.listing().await?;
        let behind = listed.map(|listed| behind(&listed.versions, &known(&self.store)));
        Ok(behind.unwrap_or_default())
    }

    /// Lists all objects; `None`: the refusal of a list shows that none is this operator's business.
    async fn listing(&self) -> kube::Result<Option<Listing>> {
        match Listing::fetch(&self.api, self.labels).await {
            Err(error) if self.refused.is_empty(&error) => Ok(None),
            listing => listing.map(Some),
        }
    }

    /// Returns once the store includes a list that began after this was called. A watch that stays behind it is begun
    /// again: its connection may be dead without either end knowing. So is one that reported what no list shows any
    /// more, because etcd was restored from an older state.
    pub async fn caught_up(&self) -> kube::Result<()> {
        if !*self.told.borrow() {
            // The first list was begun before, and a second one after it would take as long again. Once: a long list
            // that is begun again each time would never come to its end.
            if !self.gave_up_first.swap(true, Ordering::AcqRel) {
                self.listed_again().await;
                return Ok(());
            }
            self.filled().await;
        }
        let (kind, before) = (self.kind, known(&self.store));
        let Some(listing) = self.listing().await? else {
            return Ok(());
        };
        if listing.has_lost(&before) {
            warn!(kind, "a watch has shown what was lost and is begun again");
        } else if timeout(SETTLED_WITHIN, self.includes(&listing))
            .await
            .is_ok()
        {
            return Ok(());
        } else {
            warn!(kind, "a watch is behind a list and is begun again");
        }
        self.listed_again().await;
        Ok(())
    }

    pub async fn filled(&self) {
        // An error would mean that the watch is gone, and with it all that it could report.
        let _ = self.told.clone().wait_for(|told| *told).await;
    }

    /// Gives the watch up, and waits for the list with which it begins again, however long that takes.
    async fn listed_again(&self) {
        let before = self.lists.begun();
        self.begin_anew();
        while self.lists.complete() <= before {
            sleep(LOOK).await;
        }
    }

    /// Begins the watch with a list again.
    pub fn begin_anew(&self) {
        self.restart.notify_one();
    }

    /// Waits until the store includes a list.
    async fn includes(&self, listing: &Listing) {
        while !listing.is_included_in(&known(&self.store)) {
            sleep(LOOK).await;
        }
    }
}

/// Changes that the watch reports besides lists: behind passes over 10 000 listed objects, one that changes would wait
/// for seconds.
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

#[cfg(test)]
mod tests {
    use futures::stream;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, Config};
    use watcher::Event;

    use super::*;
    use crate::metrics::Metrics;

    #[tokio::test(start_paused = true)]
    async fn a_comparison_that_fails_is_counted_and_reported() {
        let client = Client::try_from(Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap();
        let (maps, metrics) = (Api::<ConfigMap>::all(client), Metrics::default());
        let health = Health::new(metrics.clone());
        let (cache, _changes) = Cache::new("maps", maps, None, OnRefusal::Unknown, &health);
        assert_eq!(cache.uncompared(), None);
        let compared = timeout(2 * COMPARED_EVERY, cache.compare()).await;
        assert!(compared.is_err());
        let failure = cache.uncompared().unwrap();
        assert!(
            failure
                .means
                .contains("the watch of maps cannot be compared"),
            "{failure:?}"
        );
        assert!(metrics.api_server_failures() > 1, "it is tried again soon");
    }

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
