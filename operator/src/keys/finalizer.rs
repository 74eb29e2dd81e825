//! The finalizer that keeps an ApiKey until its key is revoked.

use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::conditions::RECORD_MANAGER;
use crate::context::Context;
use crate::crd::ApiKey;

/// The finalizer's name.
pub const NAME: &str = "waterdata.dev/revoke";

/// The ApiKey with the finalizer; written if it was not there.
pub async fn ensure(key: &ApiKey, context: &Context) -> kube::Result<ApiKey> {
    if key.finalizers().iter().any(|finalizer| finalizer == NAME) {
        return Ok(key.clone());
    }
    let api = context.api(&key.namespace().unwrap_or_default());
    let finalizers = key
        .finalizers()
        .iter()
        .cloned()
        .chain([NAME.to_owned()])
        .collect();
    write(&api, key, finalizers).await
}

/// Lets the ApiKey go.
pub async fn remove(key: &ApiKey, api: &Api<ApiKey>) -> kube::Result<()> {
    let finalizers = key
        .finalizers()
        .iter()
        .filter(|finalizer| *finalizer != NAME)
        .cloned()
        .collect();
    match write(api, key, finalizers).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Frees every ApiKey when no operator runs that could: their keys stay in the directory until the
/// next installation sweeps it. Answers how many were freed.
pub async fn release_all(client: Client, namespace: Option<&str>) -> kube::Result<usize> {
    let listed: Api<ApiKey> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let mut freed = 0;
    for key in listed.list(&ListParams::default()).await? {
        if key.finalizers().iter().any(|finalizer| finalizer == NAME) {
            remove(
                &key,
                &Api::namespaced(client.clone(), &key.namespace().unwrap_or_default()),
            )
            .await?;
            freed += 1;
        }
    }
    Ok(freed)
}

/// With the version that was read: another writer's finalizers are not lost.
async fn write(api: &Api<ApiKey>, key: &ApiKey, finalizers: Vec<String>) -> kube::Result<ApiKey> {
    let patch = json!({ "metadata": { "resourceVersion": key.resource_version(), "finalizers": finalizers } });
    let params = PatchParams {
        field_manager: Some(RECORD_MANAGER.into()),
        ..PatchParams::default()
    };
    api.patch(&key.name_any(), &params, &Patch::Merge(patch))
        .await
}
