//! Revoke before release: an ApiKey goes once its key is out of the directory.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::controller::Action;
use water_domain::{KeyHash, Timestamp};
use water_keystore::{Change, Removal};

use super::{KeyError, Target, finalizer, record, status};
use crate::conditions::{Aspect, Finding, Outcome, Reason};
use crate::context::Context;
use crate::crd::ApiKey;
use crate::crd::api_key::IssuedAt;
use crate::events::Happening;

/// While something is away.
const RETRY: Duration = Duration::from_secs(2);

/// Revokes the key of an ApiKey that is being deleted, and lets the ApiKey go.
pub async fn run(key: &ApiKey, context: &Context, now: Timestamp) -> Result<Action, KeyError> {
    if !key
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == finalizer::NAME)
    {
        return Ok(Action::await_change());
    }
    let place = key.status.as_ref().and_then(|status| status.api.clone());
    if let Some(place) = &place
        && let Err(hindrance) = revoke(key, place, context).await?
    {
        tell(key, hindrance, context, now).await?;
        return Ok(Action::requeue(RETRY));
    }
    let about = kube::Resource::object_ref(key, &());
    finalizer::remove(key, &context.api(&key.namespace().unwrap_or_default())).await?;
    let key_id = key
        .status
        .as_ref()
        .and_then(|status| status.key_id.as_ref());
    if let Some(key_id) = key_id {
        let happened = Happening::normal("KeyRevoked", format!("key {key_id} is refused for good"));
        context.events.report(&about, &[happened]).await;
    }
    Ok(Action::await_change())
}

/// Takes every hash of the ApiKey out of the directory. The inner error says what is waited for.
async fn revoke(
    key: &ApiKey,
    place: &IssuedAt,
    context: &Context,
) -> Result<Result<(), String>, KeyError> {
    let changes: Vec<Change> = hashes(key)
        .into_iter()
        .map(|hash| Change::Remove {
            hash,
            owner: record::owner(key),
            removal: Removal::Revoke,
        })
        .collect();
    if changes.is_empty() {
        return Ok(Ok(()));
    }
    let api = context.api_at(place);
    if api.is_none() && context.directories.get(place).is_none() {
        return gates_are_gone(place, context).await;
    }
    let open = match super::opened(place, api.as_ref(), context)? {
        Ok(open) => open,
        Err(message) => return Ok(Err(message)),
    };
    let plans = api.as_ref().map(record::plans).unwrap_or_default();
    let target = Target {
        context,
        place,
        open: &open,
        plans,
    };
    match target.apply(&changes).await {
        Ok(()) => Ok(Ok(())),
        Err(KeyError::Directory(error)) => Ok(Err(format!(
            "{error}: the key is revoked as soon as that works"
        ))),
        Err(error) => Err(error),
    }
}

/// Without a WaterDataApi nobody knows where its Redis was. Without a gate nothing accepts the key,
/// and the next installation sweeps the directory.
async fn gates_are_gone(
    place: &IssuedAt,
    context: &Context,
) -> Result<Result<(), String>, KeyError> {
    let selector = format!(
        "app.kubernetes.io/name=water-gate,app.kubernetes.io/instance={}",
        place.name
    );
    let gates = context
        .api::<Pod>(&place.namespace)
        .list(&ListParams::default().labels(&selector))
        .await?;
    let names: Vec<String> = gates.iter().map(ResourceExt::name_any).collect();
    Ok(if names.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "the WaterDataApi {}/{} is gone and its gates still run ({}): waiting for their end",
            place.namespace,
            place.name,
            names.join(", ")
        ))
    })
}

/// Every hash that the directory may hold for the ApiKey. A status edited by hand names none.
fn hashes(key: &ApiKey) -> Vec<KeyHash> {
    let status = key.status.clone().unwrap_or_default();
    let current = status.current.map(|current| current.hash);
    let previous = status.previous.map(|previous| previous.hash);
    let brought = key
        .spec
        .material
        .hash
        .as_ref()
        .map(|brought| brought.sha256.clone());
    let mut hashes: Vec<KeyHash> = [current, previous, brought]
        .into_iter()
        .flatten()
        .filter_map(|hash| hash.parse().ok())
        .collect();
    hashes.sort();
    hashes.dedup();
    hashes
}

/// Says in the status what the deletion waits for.
async fn tell(
    key: &ApiKey,
    hindrance: String,
    context: &Context,
    now: Timestamp,
) -> Result<(), KeyError> {
    let mut changed = key.status.clone().unwrap_or_default();
    let outcome = Outcome::Underway(Reason::Deleting, hindrance.clone());
    let mut findings = vec![Finding::lacks(Aspect::Synced, Reason::Deleting, hindrance)];
    findings.extend(outcome.findings());
    let generation = key.metadata.generation.unwrap_or_default();
    let told = crate::conditions::stated(&changed.conditions, findings, generation, now);
    changed
        .conditions
        .retain(|condition| told.iter().all(|new| new.kind != condition.kind));
    changed.conditions.extend(told);
    changed.observed_generation = Some(generation);
    status::write(key, changed, context).await?;
    Ok(())
}
