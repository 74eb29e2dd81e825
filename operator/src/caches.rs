//! What the watches have told of ApiKeys, WaterDataApis and keys' Secrets. A standby keeps it too, so
//! that it can act as soon as it leads.

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedSender;
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
use crate::conditions::{Aspect, holds};
use crate::config::Scope;
use crate::keys::memory::Memory;
use crate::watches::Changes;
use crate::watches::cache::Cache;
use crate::watches::health::Health;

/// Between two settled ApiKeys, when a leader looks at all: 10 000 in 20 s.
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
    pub secrets: Cache<KeySecret>,
    follower: Mutex<Option<Follower>>,
    /// Counts the times at which a leader has to look at every ApiKey.
    rounds: watch::Sender<u64>,
    /// Each claim that waits until the caches have caught up is a receiver.
    waiting: watch::Sender<()>,
}

/// Where a leader hears which objects to look at.
#[derive(Clone)]
pub struct Follower {
    /// ApiKeys that changed, or whose Secret did.
    pub keys: UnboundedSender<ObjectRef<Key>>,
    /// WaterDataApis that changed.
    pub apis: UnboundedSender<ObjectRef<Installation>>,
    /// What it remembers, its own writes among them. Ends with the leadership.
    pub memory: Weak<Memory>,
}

pub struct Told {
    keys: Changes<Key>,
    apis: Changes<Installation>,
    secrets: Changes<KeySecret>,
}

impl Caches {
    /// Empty caches, and the watches that [`Caches::keep`] fills them by.
    pub fn new(client: &Client, scope: Scope, namespace: &str, health: &Health) -> (Self, Told) {
        let (keys, key_changes) =
            Cache::new("apikeys", watched(client, scope, namespace), None, health);
        let apis = watched(client, scope, namespace);
        let (apis, api_changes) = Cache::new("waterdataapis", apis, None, health);
        let secrets = watched(client, scope, namespace);
        let (secrets, secret_changes) = Cache::new("secrets", secrets, Some(KEY_LABEL), health);
        let caches = Self {
            keys,
            apis,
            secrets,
            follower: Mutex::default(),
            rounds: watch::Sender::new(0),
            waiting: watch::Sender::new(()),
        };
        let told = Told {
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
    pub async fn keep(&self, told: Told) {
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

    /// A store shows a list when that is complete: a pass over one of its objects may have run before.
    async fn tell_after_lists(&self) -> Infallible {
        let (mut keys, mut apis) = (self.keys.told.clone(), self.apis.told.clone());
        let mut secrets = self.secrets.told.clone();
        loop {
            let listed = tokio::select! {
                listed = keys.changed() => listed,
                listed = apis.changed() => listed,
                listed = secrets.changed() => listed,
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

    /// Tells a leader of the settled ApiKeys at a pace that leaves room for those that change: behind
    /// the passes over 10 000 others, a new key would wait for many seconds. During a claim all passes
    /// wait for it, and those that gathered meanwhile would come before the new key.
    async fn tell_settled(&self) -> Infallible {
        let mut rounds = self.rounds.subscribe();
        let mut pace = interval(SETTLED_EVERY);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // An error would mean that the sender is gone, and `self` holds it.
            let _ = rounds.changed().await;
            for key in self.keys.store.state() {
                if rounds.has_changed().unwrap_or(false) {
                    break;
                }
                if is_settled(&key) {
                    pace.tick().await;
                    self.let_claims_pass().await;
                    self.tell_key(ObjectRef::from_obj(&*key));
                }
            }
        }
    }

    /// Returns once no claim waits: what is told of meanwhile would come before what changes.
    pub async fn let_claims_pass(&self) {
        self.waiting.closed().await;
    }

    /// Tells of every object: of ApiKeys that are settled one after the other, of all else at once.
    fn tell_all(&self, follower: &Follower) {
        // An error means that the leadership is over.
        for key in self.keys.store.state() {
            if !is_settled(&key) {
                let _ = follower.keys.unbounded_send(ObjectRef::from_obj(&*key));
            }
        }
        self.rounds.send_modify(|rounds| *rounds += 1);
        for api in self.apis.store.state() {
            let _ = follower.apis.unbounded_send(ObjectRef::from_obj(&*api));
        }
    }

    /// A leader hears of every object, and from here on of every change.
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

    /// Has all watches begin with a list again. Until that is complete the caches stay as they are.
    pub fn begin_anew(&self) {
        self.keys.begin_anew();
        self.apis.begin_anew();
        self.secrets.begin_anew();
    }

    /// A leader's own write is no reason for another pass.
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

/// Whether an ApiKey's status says that all is done that its spec asks for.
fn is_settled(key: &Key) -> bool {
    let Ok(key) = &key.0 else { return false };
    let status = key.status.as_ref();
    key.metadata.deletion_timestamp.is_none()
        && status.is_some_and(|status| {
            status.observed_generation == key.metadata.generation
                && holds(&status.conditions, Aspect::Ready)
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

    use super::*;
    use crate::metrics::Metrics;
    use crate::sample::key_at as at;

    #[tokio::test]
    async fn a_leader_hears_of_each_change_but_its_own() {
        let client = Client::try_from(Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap();
        let health = Health::new(Metrics::default());
        let (caches, _) = Caches::new(&client, Scope::Namespaced, "team", &health);
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
            .keep(Told {
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
