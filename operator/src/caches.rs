//! Caches of ApiKeys, WaterDataApis and keys' Secrets, filled by watches. A standby fills them too, so that it can act
//! as soon as it leads.

mod routine;
mod secrets;

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedSender;
use futures::future::select_all;
use k8s_openapi::api::core::v1::Secret;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Predicate, WatchStreamExt, predicates};
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tracing::error;
use water_resources::api_key::KEY_LABEL;
use water_resources::{ApiKey, WaterDataApi};

use crate::client::watched;
use crate::conditions::{ConditionType, Failure, holds};
use crate::config::{Scope, SecretScope};
use crate::keys::memory::Memory;
use crate::watches::Changes;
use crate::watches::cache::{Cache, OnRefusal};
use crate::watches::health::Health;
use routine::Routine;
pub use secrets::{SecretCaches, SecretStores};

/// Interval between two settled ApiKeys when a leader checks all of them: 10 000 in 20 s.
const SETTLED_EVERY: Duration = Duration::from_millis(2);

/// An ApiKey, whether it can be decoded or not.
pub type Key = DeserializeGuard<ApiKey>;
/// A WaterDataApi, likewise.
pub type Installation = DeserializeGuard<WaterDataApi>;
/// The metadata of a key's Secret.
pub type KeySecret = PartialObjectMeta<Secret>;

pub struct Caches {
    pub keys: Cache<Key>,
    pub apis: Cache<Installation>,
    pub secrets: SecretCaches,
    follower: Mutex<Option<Follower>>,
    /// Settled ApiKeys that the leader checks again.
    routine: Routine,
    /// Channel with a receiver for each claim that waits until the caches have caught up.
    waiting: watch::Sender<()>,
}

/// Channels that name to a leader the objects to reconcile, and its memory.
#[derive(Clone)]
pub struct Follower {
    /// ApiKeys that changed, or whose Secret did.
    pub keys: UnboundedSender<ObjectRef<Key>>,
    /// WaterDataApis that changed.
    pub apis: UnboundedSender<ObjectRef<Installation>>,
    /// Memory of the leader, with its own writes. Ends with the leadership.
    pub memory: Weak<Memory>,
}

pub struct CacheChanges {
    keys: Changes<Key>,
    apis: Changes<Installation>,
    secrets: Changes<KeySecret>,
}

impl Caches {
    /// Empty caches, and the watches that [`Caches::keep`] fills them by.
    pub fn new(
        client: &Client,
        scope: Scope,
        namespace: &str,
        secrets: &SecretScope,
        health: &Health,
    ) -> (Self, CacheChanges) {
        let unknown = OnRefusal::Unknown;
        let keys = watched(client, scope, namespace);
        let (keys, key_changes) = Cache::new("apikeys", keys, None, unknown, health);
        let apis = watched(client, scope, namespace);
        let (apis, api_changes) = Cache::new("waterdataapis", apis, None, unknown, health);
        let (secrets, secret_changes) = SecretCaches::new(client, secrets, health);
        let caches = Self {
            keys,
            apis,
            secrets,
            follower: Mutex::default(),
            routine: Routine::default(),
            waiting: watch::Sender::new(()),
        };
        let told = CacheChanges {
            keys: key_changes,
            // A status that a pass has written is no reason for another.
            apis: api_changes
                .predicate_filter(
                    predicates::generation.combine(predicates::annotations),
                    Default::default(),
                )
                .boxed(),
            secrets: secret_changes,
        };
        (caches, told)
    }

    /// Fills the caches for as long as it runs; returns when a watch has ended, which none should.
    pub async fn keep(&self, told: CacheChanges) {
        let keys = told.keys.for_each(async |key| {
            if let Ok(key) = key {
                self.tell_changed(&key);
            }
        });
        let apis = told.apis.for_each(async |api| {
            if let (Ok(api), Some(follower)) = (api, &*self.follower()) {
                let _ = follower.apis.unbounded_send(ObjectRef::from_obj(&api));
            }
        });
        let secrets = told.secrets.for_each(async |secret| {
            if let Some(key) = secret.ok().as_ref().and_then(key_of) {
                self.tell_key(key);
            }
        });
        tokio::select! {
            never = self.tell_after_lists() => match never {},
            never = self.tell_settled() => match never {},
            () = keys => error!("the watch of ApiKeys has ended"),
            () = apis => error!("the watch of WaterDataApis has ended"),
            () = secrets => error!("the watch of keys' Secrets has ended"),
            never = self.keys.compare() => match never {},
            never = self.apis.compare() => match never {},
            never = self.secrets.compare() => match never {},
        }
    }

    /// Asks for a pass over every object after each list. A store shows a list when that is complete: a pass over one
    /// of its objects may have run before.
    async fn tell_after_lists(&self) -> Infallible {
        let (mut keys, mut apis) = (self.keys.told.clone(), self.apis.told.clone());
        let mut secrets = self.secrets.told();
        loop {
            let of_secrets = secrets.iter_mut().map(|told| Box::pin(told.changed()));
            let listed = tokio::select! {
                listed = keys.changed() => listed,
                listed = apis.changed() => listed,
                (listed, _, _) = select_all(of_secrets) => listed,
            };
            if listed.is_err() {
                pending::<Infallible>().await;
            }
            let follower = self.follower().clone();
            if let Some(follower) = follower {
                self.tell_all(&follower);
            }
        }
    }

    /// Reports the settled ApiKeys to the leader at their pace. During a claim all passes wait for it, and those that
    /// gathered meanwhile would come before a new key.
    async fn tell_settled(&self) -> Infallible {
        let mut pace = interval(SETTLED_EVERY);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let key = self.routine.next().await;
            pace.tick().await;
            self.let_claims_pass().await;
            self.tell_key(key);
        }
    }

    /// Returns once no claim waits: what is reported meanwhile would come before what changes.
    pub async fn let_claims_pass(&self) {
        self.waiting.closed().await;
    }

    /// Asks for another pass over some ApiKeys: over those that are settled one after the other, over the others at once.
    /// `is_concerned`: their WaterDataApi has changed.
    pub fn revisit(&self, keys: Vec<Arc<Key>>, is_concerned: bool) {
        let (settled, others): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| is_settled(key));
        for key in others {
            self.tell_key(place(&key));
        }
        let settled = settled.iter().map(|key| place(key));
        self.routine.add(settled, is_concerned);
    }

    /// Asks for a pass over every object.
    fn tell_all(&self, follower: &Follower) {
        self.revisit(self.keys.store.state(), false);
        // An error means that the leadership is over.
        for api in self.apis.store.state() {
            let _ = follower.apis.unbounded_send(ObjectRef::from_obj(&*api));
        }
    }

    /// Names every object to a leader, and from here on every change.
    pub fn follow(&self, follower: Follower) {
        *self.follower() = Some(follower.clone());
        self.tell_all(&follower);
    }

    pub async fn filled(&self) {
        tokio::join!(
            self.keys.filled(),
            self.apis.filled(),
            self.secrets.filled()
        );
    }

    /// Returns once the caches include everything that had happened when this was called.
    pub async fn caught_up(&self) -> kube::Result<()> {
        let _waiting = self.waiting.subscribe();
        tokio::try_join!(
            self.keys.caught_up(),
            self.apis.caught_up(),
            self.secrets.caught_up()
        )?;
        Ok(())
    }

    /// Each [comparison](Cache::uncompared) that failed.
    pub fn uncompared(&self) -> Vec<Failure> {
        let own = [self.keys.uncompared(), self.apis.uncompared()];
        let of_secrets = self.secrets.uncompared();
        own.into_iter().flatten().chain(of_secrets).collect()
    }

    /// Begins all watches with a list again. Until that is complete the caches stay as they are.
    pub fn begin_anew(&self) {
        self.keys.begin_anew();
        self.apis.begin_anew();
        self.secrets.begin_anew();
    }

    /// Asks for a pass over a changed ApiKey, unless the change is the leader's own write.
    fn tell_changed(&self, key: &Key) {
        let is_own = |memory: Arc<Memory>| key.0.as_ref().is_ok_and(|key| memory.wrote(key));
        if let Some(follower) = &*self.follower()
            && !follower.memory.upgrade().is_some_and(is_own)
        {
            let _ = follower.keys.unbounded_send(ObjectRef::from_obj(key));
        }
    }

    fn tell_key(&self, key: ObjectRef<Key>) {
        if let Some(follower) = &*self.follower() {
            let _ = follower.keys.unbounded_send(key);
        }
    }

    fn follower(&self) -> MutexGuard<'_, Option<Follower>> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reference to an ApiKey without the rest of its metadata.
fn place(key: &Key) -> ObjectRef<Key> {
    let namespace = key.namespace().unwrap_or_default();
    ObjectRef::new(&key.name_any()).within(&namespace)
}

fn is_settled(key: &Key) -> bool {
    key.0.as_ref().is_ok_and(is_done)
}

/// Whether an ApiKey's status says that all is done that its spec asks for.
pub fn is_done(key: &ApiKey) -> bool {
    let status = key.status.as_ref();
    key.metadata.deletion_timestamp.is_none()
        && status.is_some_and(|status| {
            status.observed_generation == key.metadata.generation
                && [ConditionType::Synced, ConditionType::Ready]
                    .iter()
                    .all(|aspect| holds(&status.conditions, *aspect))
        })
}

/// The ApiKey whose Secret it is.
fn key_of(secret: &KeySecret) -> Option<ObjectRef<Key>> {
    let name = secret.labels().get(KEY_LABEL)?;
    Some(ObjectRef::new(name).within(secret.metadata.namespace.as_deref()?))
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc;
    use futures::stream;
    use kube::Config;
    use tokio::time::timeout;

    use super::*;
    use crate::metrics::Metrics;
    use crate::sample::key_at as at;

    #[tokio::test(start_paused = true)]
    async fn each_watch_that_cannot_be_compared_is_reported() {
        let client = Client::try_from(Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap();
        let health = Health::new(Metrics::default());
        let secrets = SecretScope::Cluster;
        let (caches, _) = Caches::new(&client, Scope::Namespaced, "team", &secrets, &health);
        let silent = CacheChanges {
            keys: stream::pending().boxed(),
            apis: stream::pending().boxed(),
            secrets: stream::pending().boxed(),
        };
        // Longer than until the first comparison.
        let kept = timeout(Duration::from_secs(3600), caches.keep(silent)).await;
        assert!(kept.is_err());
        let failures = caches.uncompared();
        let failed: Vec<_> = failures.iter().map(|failure| &*failure.means).collect();
        assert_eq!(failed.len(), 3, "{failed:?}");
        for (failed, kind) in failed.iter().zip(["apikeys", "waterdataapis", "secrets"]) {
            let words = format!("the watch of {kind} cannot be compared");
            assert!(failed.starts_with(&words), "{failed}");
        }
    }

    #[tokio::test]
    async fn a_leader_hears_of_each_change_but_its_own() {
        let client = Client::try_from(Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap();
        let health = Health::new(Metrics::default());
        let secrets = SecretScope::Cluster;
        let (caches, _) = Caches::new(&client, Scope::Namespaced, "team", &secrets, &health);
        let ((keys, mut heard), (apis, _)) = (mpsc::unbounded(), mpsc::unbounded());
        let memory = Arc::<Memory>::default();
        caches.follow(Follower {
            keys,
            apis,
            memory: Arc::downgrade(&memory),
        });
        memory.keep_written(&at("10"));
        let changes = ["9", "10", "11"].map(|version| Ok(DeserializeGuard(Ok(at(version)))));
        caches
            .keep(CacheChanges {
                keys: stream::iter(changes).boxed(),
                apis: stream::pending().boxed(),
                secrets: stream::pending().boxed(),
            })
            .await;
        let mut count = 0;
        while heard.try_recv().is_ok() {
            count += 1;
        }
        assert_eq!(count, 2, "somebody else's before and after");
        assert_eq!(memory.newer(&at("9")), None, "nothing of it is kept");
    }
}
