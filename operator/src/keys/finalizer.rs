//! The finalizer that keeps an ApiKey until its key is revoked, and the label of its account.

use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use water_resources::ApiKey;

use crate::conditions::RECORD_MANAGER;

pub const NAME: &str = "waterdata.dev/revoke";
/// The label that names the account, of an ApiKey and of its Secret.
pub const ACCOUNT_LABEL: &str = "waterdata.dev/account";

/// Whether the finalizer is there.
pub fn is_on(meta: &ObjectMeta) -> bool {
    others(meta).count() < meta.finalizers.iter().flatten().count()
}

/// Whether the label names the account.
pub fn is_labelled(key: &ApiKey) -> bool {
    let label = key.labels().get(ACCOUNT_LABEL);
    label.is_some_and(|label| label == key.spec.account_id.as_str())
}

/// Adds finalizer and label. The version that was read makes the write fail when somebody else
/// wrote: another's finalizers are not lost.
pub async fn add(key: &ApiKey, api: &Api<ApiKey>) -> kube::Result<ApiKey> {
    let finalizers: Vec<&str> = others(&key.metadata).chain([NAME]).collect();
    let patch = json!({ "metadata": {
        "resourceVersion": key.resource_version(),
        "finalizers": finalizers,
        "labels": { ACCOUNT_LABEL: key.spec.account_id },
    } });
    let (params, patch) = (PatchParams::apply(RECORD_MANAGER), Patch::Merge(patch));
    api.patch(&key.name_any(), &params, &patch).await
}

/// Lets the ApiKey go, whether it can be decoded or not; fails likewise.
pub async fn remove(meta: &ObjectMeta, api: &Api<ApiKey>) -> kube::Result<()> {
    let finalizers: Vec<&str> = others(meta).collect();
    let patch = json!({ "metadata": {
        "resourceVersion": meta.resource_version,
        "finalizers": finalizers,
    } });
    let name = meta.name.as_deref().unwrap_or_default();
    let (params, patch) = (PatchParams::apply(RECORD_MANAGER), Patch::Merge(patch));
    match api.patch_metadata(name, &params, &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

fn others(meta: &ObjectMeta) -> impl Iterator<Item = &str> {
    let all = meta.finalizers.iter().flatten().map(String::as_str);
    all.filter(|name| *name != NAME)
}
