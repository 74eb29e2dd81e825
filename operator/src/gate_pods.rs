//! The gates' pods in the namespaces that hold WaterDataApis, as a watch tells of them.

use std::collections::HashMap;

use futures::StreamExt;
use futures::stream::select_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use water_resources::api_key::ApiName;

use crate::installation::render::Part;
use crate::watches::Changes;
use crate::watches::cache::Cache;
use crate::watches::health::Health;

/// What every gate's pod carries.
const GATES: &str = "app.kubernetes.io/name=water-gate";
/// Which part a pod is of.
const NAME: &str = "app.kubernetes.io/name";
/// Which WaterDataApi's it is.
const INSTANCE: &str = "app.kubernetes.io/instance";

pub struct GatePods(HashMap<String, Cache<Pod>>);

impl GatePods {
    /// Knows no pod before the watches are taken.
    pub fn new(client: &Client, namespaces: &[String], health: &Health) -> (Self, Changes<Pod>) {
        let watch = |namespace: &String| {
            let pods = Api::namespaced(client.clone(), namespace);
            let (cache, changes) = Cache::new("pods", pods, Some(GATES), health);
            ((namespace.clone(), cache), changes)
        };
        let (caches, changes): (_, Vec<_>) = namespaces.iter().map(watch).unzip();
        (Self(caches), select_all(changes).boxed())
    }

    /// The pods of a WaterDataApi's gates, as far as the watch has told; none in a namespace that holds
    /// no WaterDataApi.
    pub fn of(&self, api: &ApiName) -> Vec<Pod> {
        let Some(cache) = self.0.get(&api.namespace) else {
            return Vec::new();
        };
        let is_its = |pod: &Pod| pod.labels().get(INSTANCE) == Some(&api.name);
        let pods = cache.store.state_filter(is_its);
        pods.iter().map(|pod| (**pod).clone()).collect()
    }

    /// Returns once [`GatePods::of`] includes every pod that there was when this was called.
    pub async fn caught_up(&self, api: &ApiName) -> kube::Result<()> {
        match self.0.get(&api.namespace) {
            Some(cache) => cache.caught_up().await,
            None => Ok(()),
        }
    }
}

/// The pods of a part of a WaterDataApi, asked for afresh.
pub async fn list(client: &Client, api: &ApiName, part: Part) -> kube::Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &api.namespace);
    let selector = format!("{NAME}={},{INSTANCE}={}", part.program(), api.name);
    let listed = pods.list(&ListParams::default().labels(&selector)).await?;
    Ok(listed.items)
}
