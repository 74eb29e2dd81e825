//! How the operator asks the API server, and how it watches.

use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use water_resources::client::{self, ClientError};

use crate::conditions::RECORD_MANAGER;
use crate::config::Scope;

/// Above a watch's own 60 s, so that only a dead connection meets it.
const READ_TIMEOUT: Duration = Duration::from_secs(75);
/// A dead watch is noticed this soon; kube's default is 295 s.
const WATCH_SECONDS: u32 = 60;

/// A client whose watches live as long as the API server lets them.
pub async fn connect() -> Result<Client, ClientError> {
    client::connect(READ_TIMEOUT).await
}

/// How everything is watched.
pub fn watching() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// How statuses and Secrets are written.
pub fn record_params() -> PostParams {
    PostParams {
        field_manager: Some(RECORD_MANAGER.into()),
        ..PostParams::default()
    }
}

/// Everything of a kind that may be looked at.
pub fn watched<K>(client: &Client, scope: Scope, namespace: &str) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match scope {
        Scope::Namespaced => Api::namespaced(client.clone(), namespace),
        Scope::Cluster => Api::all(client.clone()),
    }
}

/// Objects of a kind as they are stored, whether they can be decoded or not.
pub fn stored<K>(client: &Client, namespace: &str) -> Api<DynamicObject>
where
    K: Resource<DynamicType = ()>,
{
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<K>(&()))
}

/// Whether nothing can be created in a namespace any more. Where that may not be asked, the API server
/// refuses what is created.
pub async fn is_terminating(client: &Client, namespace: &str) -> kube::Result<bool> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get(namespace).await {
        Ok(namespace) => Ok(namespace.metadata.deletion_timestamp.is_some()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(false),
        Err(error) => Err(error),
    }
}
