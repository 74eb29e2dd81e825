//! What the controllers share while this pod leads.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, ObjectMeta};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client, Resource};
use water_keystore::Owner;
use water_resources::api_key::ApiName;
use water_resources::{ApiKey, WaterDataApi};

use crate::backoff::Backoff;
use crate::caches::{Caches, Follower, Installation, Key};
use crate::config::Scope;
use crate::directories::{Directories, Namespaces};
use crate::events::Events;
use crate::gate_pods::GatePods;
use crate::keys::memory::Memory;
use crate::keys::secret::Secrets;
use crate::metrics::Metrics;

pub struct Context {
    pub client: Client,
    /// Which namespaces may be looked at.
    pub scope: Scope,
    pub namespace: String,
    /// The namespaces in which WaterDataApis are rolled out.
    pub api_namespaces: Vec<String>,
    pub events: Events,
    /// What the watches have told; the stores below are theirs.
    pub caches: Arc<Caches>,
    /// All ApiKeys, as the watch last told; those that cannot be decoded too.
    pub keys: Store<Key>,
    /// All WaterDataApis, likewise.
    pub apis: Store<Installation>,
    pub secrets: Secrets,
    pub revisit: Follower,
    /// What is remembered of ApiKeys while this pod leads.
    pub memory: Arc<Memory>,
    pub directories: Directories,
    pub gate_pods: GatePods,
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

    /// What stands at the place of a WaterDataApi, whether it can be decoded or not.
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
        let concerned = |key: &ApiKey| {
            let issued = key.status.as_ref().and_then(|status| status.api.as_ref());
            issued.is_none_or(|issued| issued == place)
        };
        for key in keys_where(&self.keys, concerned) {
            self.revisit_key(key);
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

    pub fn revisit_api(&self, place: &ApiName) {
        let api = ObjectRef::new(&place.name).within(&place.namespace);
        let _ = self.revisit.apis.unbounded_send(api);
    }

    /// The labels of all namespaces that are looked at, read afresh.
    pub async fn all_namespaces(&self) -> kube::Result<Namespaces> {
        let labelled = |meta: ObjectMeta| {
            let name = meta.name.unwrap_or_default();
            (name, meta.labels.unwrap_or_default())
        };
        if self.scope == Scope::Namespaced {
            let own = self.namespace(&self.namespace).await?;
            return Ok([labelled(own.metadata)].into());
        }
        let all = Api::<Namespace>::all(self.client.clone());
        let listed = all.list_metadata(&ListParams::default()).await?;
        let listed = listed.items.into_iter();
        Ok(listed
            .map(|namespace| labelled(namespace.metadata))
            .collect())
    }

    /// A namespace, read afresh.
    pub async fn namespace(&self, name: &str) -> kube::Result<Namespace> {
        Api::<Namespace>::all(self.client.clone()).get(name).await
    }
}

/// The ApiKeys for which something holds; of those that can be decoded.
pub fn keys_where(keys: &Store<Key>, wanted: impl Fn(&ApiKey) -> bool) -> Vec<ObjectRef<Key>> {
    let found = keys.state_filter(|key| key.0.as_ref().is_ok_and(&wanted));
    found
        .iter()
        .map(|key| ObjectRef::from_obj(&**key))
        .collect()
}
