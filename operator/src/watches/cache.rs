//! All objects of one kind, as a watch tells of them.

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::runtime::reflector::Store;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::health::Health;
use super::listing::{Listing, Versions, known, list};
use super::{Changes, Lists, relist, remembered};
use crate::client::watching;

/// A watch that is this far behind a list is begun anew.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);
/// Between two comparisons with a list.
const LOOK: Duration = Duration::from_millis(20);

/// All objects of one kind.
pub struct Cache<K: Resource<DynamicType = ()> + 'static> {
    /// The objects.
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
        let told = watch::Sender::new(false);
        let receiver = told.subscribe();
        let watch = remembered(api.clone(), config, told, health.watch(kind));
        let cache = Self {
            store: watch.store,
            told: receiver,
            kind,
            api,
            labels,
            restart: watch.restart,
            lists: watch.lists,
            gave_up_first: AtomicBool::new(false),
        };
        (cache, watch.changes)
    }

    /// Compares the store with a list now and then: a watch that has missed something is begun anew.
    pub async fn compare(&self) -> Infallible {
        relist::look(
            self.kind,
            self.api.clone(),
            self.labels,
            self.store.clone(),
            &self.restart,
        )
        .await
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
            let listing = list(&self.api, self.labels).await?;
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

    /// Returns once the watch has told of everything.
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
