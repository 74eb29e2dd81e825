//! The finalizer that keeps an ApiKey until its key is revoked.

use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};
use water_resources::ApiKey;
use water_resources::api_key::FINALIZER;

use crate::conditions::RECORD_MANAGER;

/// Whether the finalizer is there.
pub fn is_on(meta: &ObjectMeta) -> bool {
    meta.finalizers
        .iter()
        .flatten()
        .any(|name| name == FINALIZER)
}

/// Adds the finalizer. The version that was read makes the write fail when somebody else wrote: another's
/// finalizers are not lost.
pub async fn add(meta: &ObjectMeta, api: &Api<ApiKey>) -> kube::Result<ApiKey> {
    let mut finalizers = others(meta, api).await?;
    finalizers.push(FINALIZER.to_owned());
    let (params, patch) = (PatchParams::apply(RECORD_MANAGER), patch(meta, &finalizers));
    let name = meta.name.as_deref().unwrap_or_default();
    api.patch(name, &params, &Patch::Merge(patch)).await
}

/// Removes the finalizer of an ApiKey, whether that can be decoded or not; fails likewise. Returns whether it is gone:
/// a webhook may put it back.
pub async fn remove(meta: &ObjectMeta, api: &Api<ApiKey>) -> kube::Result<bool> {
    let removed = async {
        let finalizers = others(meta, api).await?;
        let (params, patch) = (PatchParams::apply(RECORD_MANAGER), patch(meta, &finalizers));
        let name = meta.name.as_deref().unwrap_or_default();
        api.patch_metadata(name, &params, &Patch::Merge(patch))
            .await
    };
    match removed.await {
        Ok(left) => Ok(!is_on(&left.metadata)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
        Err(error) => Err(error),
    }
}

fn patch(meta: &ObjectMeta, finalizers: &[String]) -> Value {
    json!({ "metadata": { "resourceVersion": meta.resource_version, "finalizers": finalizers } })
}

/// The other finalizers. What is remembered of an ApiKey shows one of them at most: then all are read.
async fn others(meta: &ObjectMeta, api: &Api<ApiKey>) -> kube::Result<Vec<String>> {
    let others = |meta: &ObjectMeta| {
        let all = meta.finalizers.iter().flatten();
        let others = all.filter(|name| *name != FINALIZER).cloned();
        others.collect::<Vec<_>>()
    };
    let known = others(meta);
    if known.is_empty() {
        return Ok(known);
    }
    let name = meta.name.as_deref().unwrap_or_default();
    let stored = api.get_metadata(name).await?;
    Ok(others(&stored.metadata))
}
