//! State that the controllers share while this pod leads.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client, Resource};
use water_keystore::Owner;
use water_resources::api_key::ApiName;
use water_resources::{ApiKey, WaterDataApi};

use crate::backoff::Backoff;
use crate::caches::{Caches, Follower, Installation, Key, is_done};
use crate::config::Scope;
use crate::definitions::Definitions;
use crate::directories::{Directories, Namespaces};
use crate::events::Events;
use crate::gate_pods::GatePods;
use crate::keys::memory::Memory;
use crate::keys::queues::Queues;
use crate::keys::secret::Secrets;
use crate::metrics::Metrics;
use crate::watches::listing;

pub struct Context {
    pub client: Client,
    /// Namespaces that may be read.
    pub scope: Scope,
    pub namespace: String,
    /// The namespaces in which WaterDataApis are rolled out.
    pub api_namespaces: Vec<String>,
    pub events: Events,
    /// Caches of the watches, which fill the stores below.
    pub caches: Arc<Caches>,
    /// Every ApiKey as the watch last reported it, also one that cannot be decoded.
    pub keys: Store<Key>,
    /// Every WaterDataApi, likewise.
    pub apis: Store<Installation>,
    pub secrets: Secrets,
    pub revisit: Follower,
    /// Memory of ApiKeys while this pod leads.
    pub memory: Arc<Memory>,
    /// Queues in which ApiKeys wait for their passes.
    pub queues: Queues,
    pub directories: Arc<Directories>,
    pub gate_pods: GatePods,
    pub definitions: Definitions,
    pub backoff: Backoff,
    pub metrics: Metrics,
}

impl Context {
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// WaterDataApi of that namespace and name, whether it can be decoded or not.
    pub fn api_at(&self, place: &ApiName) -> Option<Arc<Installation>> {
        let at = ObjectRef::new(&place.name).within(&place.namespace);
        self.apis.get(&at)
    }

    pub fn decoded_api(&self, place: &ApiName) -> Option<WaterDataApi> {
        self.api_at(place)?.0.as_ref().ok().cloned()
    }

    /// Forgets what is remembered of objects that are gone, and answers the uids of those that are
    /// not.
    pub fn forget_gone(&self) -> HashSet<String> {
        let (keys, apis) = (self.keys.state(), self.apis.state());
        let keys = keys.iter().filter_map(|key| key.meta().uid.clone());
        let apis = apis.iter().filter_map(|api| api.meta().uid.clone());
        let living: HashSet<String> = keys.chain(apis).collect();
        self.memory.retain(&living);
        self.secrets.kept.retain(&living);
        self.backoff.retain(&living);
        living
    }

    /// Asks for another pass over every ApiKey that is, or might become, one of that WaterDataApi.
    pub fn revisit_keys_of(&self, place: &ApiName) {
        let concerned = |key: &ApiKey| may_belong_to(key, place);
        self.caches.revisit(keys_that(&self.keys, concerned), true);
    }

    /// Asks for another pass over every ApiKey of that WaterDataApi whose status does not say that all is done.
    pub fn revisit_unsettled_keys_of(&self, place: &ApiName) {
        let concerned = |key: &ApiKey| is_unsettled_of(key, place);
        for key in keys_that(&self.keys, concerned) {
            self.revisit_key(ObjectRef::from_obj(&*key));
        }
    }

    pub fn revisit_key(&self, key: ObjectRef<Key>) {
        // An error means that the controller is gone, and this pass about to be dropped.
        let _ = self.revisit.keys.unbounded_send(key);
    }

    /// Asks for another pass over the ApiKey that owns records.
    pub fn revisit_owner(&self, owner: &Owner) {
        self.revisit_key(ObjectRef::new(&owner.name).within(&owner.namespace));
    }

    /// Asks for another pass over every WaterDataApi.
    pub fn revisit_apis(&self) {
        for api in self.apis.state() {
            let _ = self.revisit.apis.unbounded_send(ObjectRef::from_obj(&*api));
        }
    }

    pub fn revisit_api(&self, place: &ApiName) {
        let api = ObjectRef::new(&place.name).within(&place.namespace);
        let _ = self.revisit.apis.unbounded_send(api);
    }

    /// Labels of all namespaces in scope, read again.
    pub async fn all_namespaces(&self) -> kube::Result<Namespaces> {
        if self.scope == Scope::Namespaced {
            let own = self.namespace(&self.namespace).await?.metadata;
            let name = self.namespace.clone();
            return Ok([(name, own.labels.unwrap_or_default())].into());
        }
        listing::labels(&Api::<Namespace>::all(self.client.clone())).await
    }

    /// A namespace, read afresh.
    pub async fn namespace(&self, name: &str) -> kube::Result<Namespace> {
        Api::<Namespace>::all(self.client.clone()).get(name).await
    }
}

fn may_belong_to(key: &ApiKey, place: &ApiName) -> bool {
    key.issued_at().is_none() || key.may_be_at(place)
}

/// Whether an ApiKey is, or might become, one of that WaterDataApi, and waits for something.
fn is_unsettled_of(key: &ApiKey, place: &ApiName) -> bool {
    may_belong_to(key, place) && !is_done(key)
}

/// The ApiKeys that are concerned. One that cannot be decoded may be any WaterDataApi's.
fn keys_that(keys: &Store<Key>, are_concerned: impl Fn(&ApiKey) -> bool) -> Vec<Arc<Key>> {
    keys.state_filter(|key| key.0.as_ref().map_or(true, &are_concerned))
}

/// The ApiKeys in a namespace, whether they can be decoded or not.
pub fn keys_in(namespace: &str, keys: &Store<Key>) -> Vec<ObjectRef<Key>> {
    let found = keys.state_filter(|key| key.meta().namespace.as_deref() == Some(namespace));
    found
        .iter()
        .map(|key| ObjectRef::from_obj(&**key))
        .collect()
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use kube::core::DeserializeGuard;
    use kube::core::error_boundary::InvalidObject;
    use kube::runtime::{reflector, watcher};
    use water_resources::ApiKeyStatus;

    use super::*;
    use crate::clock;
    use crate::conditions::{ConditionType, Finding, Reason, stated};
    use crate::sample;

    #[test]
    fn what_waits_at_a_water_data_api_or_for_one_is_unsettled() {
        let place = |name: &str| ApiName {
            namespace: "team".into(),
            name: name.into(),
        };
        let mut key = sample::key("acme", "team");
        assert!(is_unsettled_of(&key, &place("water-data")), "of any");
        let holds = |aspect| Finding::holds(aspect, Reason::Active, "");
        let done = [ConditionType::Synced, ConditionType::Ready].map(holds);
        key.status = Some(ApiKeyStatus {
            api: Some(place("water-data")),
            conditions: stated(&[], done.into(), 1, clock::now()),
            ..Default::default()
        });
        assert!(!is_unsettled_of(&key, &place("water-data")), "it is done");
        key.metadata.generation = Some(2);
        assert!(is_unsettled_of(&key, &place("water-data")));
        assert!(!is_unsettled_of(&key, &place("other")), "of another");
    }

    /// These ApiKeys, and `comma` in namespace `team`, which cannot be decoded.
    fn with_undecodable(others: [ApiKey; 2]) -> Store<Key> {
        let (keys, mut writer) = reflector::store();
        let undecodable = InvalidObject {
            error: "no account".into(),
            metadata: sample::key("comma", "team").metadata,
        };
        for key in [Err(undecodable)].into_iter().chain(others.map(Ok)) {
            writer.apply_watcher_event(&watcher::Event::Apply(DeserializeGuard(key)));
        }
        keys
    }

    #[test]
    fn apikeys_that_cannot_be_decoded_are_checked_with_those_of_each_water_data_api() {
        let place = |name: &str| ApiName {
            namespace: "team".into(),
            name: name.into(),
        };
        let issued = |name: &str, api: &str| {
            let mut key = sample::key(name, "team");
            key.status = Some(ApiKeyStatus {
                api: Some(place(api)),
                ..Default::default()
            });
            key
        };
        let keys = with_undecodable([issued("acme", "water-data"), issued("globex", "other")]);
        let found = keys_that(&keys, |key| may_belong_to(key, &place("water-data")));
        let mut found: Vec<_> = found.iter().map(|key| key.name_any()).collect();
        found.sort();
        assert_eq!(found, ["acme", "comma"]);
    }

    #[test]
    fn apikeys_of_a_namespace_that_changes_are_found_though_they_cannot_be_decoded() {
        let keys = with_undecodable([sample::key("acme", "team"), sample::key("acme", "beside")]);
        let mut found: Vec<_> = keys_in("team", &keys)
            .into_iter()
            .map(|key| key.name)
            .collect();
        found.sort();
        assert_eq!(found, ["acme", "comma"]);
    }
}
