//! Metadata of keys' Secrets: of all namespaces in one watch, or of each namespace in which the operator has the right.

use std::convert::Infallible;
use std::sync::Arc;

use futures::future::{join_all, select_all, try_join_all};
use futures::{StreamExt, stream};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client};
use tokio::sync::watch;
use water_resources::api_key::KEY_LABEL;

use super::KeySecret;
use crate::conditions::Failure;
use crate::config::SecretScope;
use crate::watches::Changes;
use crate::watches::cache::{Cache, OnRefusal};
use crate::watches::health::Health;

/// The caches, one for each watch.
pub struct SecretCaches(Vec<Part>);

struct Part {
    /// Namespace of the cached Secrets; `None`: all namespaces.
    namespace: Option<String>,
    cache: Cache<KeySecret>,
}

/// Stores of the watches, to look Secrets up.
#[derive(Clone)]
pub struct SecretStores(Vec<(Option<String>, Store<KeySecret>)>);

impl SecretCaches {
    /// Empty caches, and the watches that fill them. Where several namespaces are named, one that does not exist, or
    /// in which the right is missing, has no Secrets: it keeps nobody else's ApiKeys waiting.
    pub fn new(
        client: &Client,
        scope: &SecretScope,
        health: &Health,
    ) -> (Self, Changes<KeySecret>) {
        let all = |client: &Client| Api::<KeySecret>::all(client.clone());
        let watched: Vec<(Option<String>, Api<KeySecret>, OnRefusal)> = match scope {
            SecretScope::Cluster => vec![(None, all(client), OnRefusal::Unknown)],
            SecretScope::Namespaces(names) => {
                let refused = match names.len() {
                    1 => OnRefusal::Unknown,
                    _ => OnRefusal::Empty,
                };
                let of = |name: &String| {
                    let api = Api::namespaced(client.clone(), name);
                    (Some(name.clone()), api, refused)
                };
                names.iter().map(of).collect()
            }
        };
        let (mut parts, mut changes) = (Vec::new(), Vec::new());
        for (namespace, api, refused) in watched {
            let (cache, changed) = Cache::new("secrets", api, Some(KEY_LABEL), refused, health);
            parts.push(Part { namespace, cache });
            changes.push(changed);
        }
        (Self(parts), stream::select_all(changes).boxed())
    }

    /// Stores of all caches.
    pub fn stores(&self) -> SecretStores {
        let stores = self
            .each()
            .map(|part| (part.namespace.clone(), part.cache.store.clone()));
        SecretStores(stores.collect())
    }

    /// Receivers that say of each watch whether it has shown all that there is.
    pub fn told(&self) -> Vec<watch::Receiver<bool>> {
        self.each().map(|part| part.cache.told.clone()).collect()
    }

    /// Waits until [each is filled](Cache::filled).
    pub async fn filled(&self) {
        join_all(self.each().map(|part| part.cache.filled())).await;
    }

    /// Waits until [each has caught up](Cache::caught_up).
    pub async fn caught_up(&self) -> kube::Result<()> {
        try_join_all(self.each().map(|part| part.cache.caught_up())).await?;
        Ok(())
    }

    /// [Compares](Cache::compare) each with a list now and then.
    pub async fn compare(&self) -> Infallible {
        let compared = self.each().map(|part| Box::pin(part.cache.compare()));
        select_all(compared).await.0
    }

    /// Each [comparison](Cache::uncompared) that failed.
    pub fn uncompared(&self) -> impl Iterator<Item = Failure> {
        self.each().filter_map(|part| part.cache.uncompared())
    }

    /// [Begins](Cache::begin_anew) each watch again.
    pub fn begin_anew(&self) {
        self.each().for_each(|part| part.cache.begin_anew());
    }

    fn each(&self) -> impl Iterator<Item = &Part> {
        self.0.iter()
    }
}

impl SecretStores {
    /// The Secret at a place, if its watch has shown it.
    pub fn get(&self, place: &ObjectRef<KeySecret>) -> Option<Arc<KeySecret>> {
        let is_there =
            |namespace: &Option<String>| namespace.is_none() || *namespace == place.namespace;
        let mut stores = self.0.iter().filter(|(namespace, _)| is_there(namespace));
        stores.find_map(|(_, store)| store.get(place))
    }
}
