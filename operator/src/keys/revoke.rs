//! Revoke before release: an ApiKey goes once its key is out of the directory and every gate has
//! acknowledged that.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use tokio::time::Instant;
use water_domain::{KeyHash, Timestamp};
use water_keystore::{Change, Removal};

use super::{KeyError, Target, finalizer, record, report, status};
use crate::conditions::{Aspect, Finding, Outcome, Reason};
use crate::context::Context;
use crate::crd::ApiKey;
use crate::crd::api_key::IssuedAt;
use crate::directories::acknowledgements::gate_pods;
use crate::directories::waits::Standing;
use crate::events::Happening;

/// While something is away, or gates are waited for.
const RETRY: Duration = Duration::from_secs(2);

/// What a deletion waits for.
enum Hindrance {
    /// Something that is away, in words.
    Away(String),
    /// Gates that may still accept the key: their pods.
    Gates(BTreeSet<String>),
    /// The gates' word on what was written a moment ago.
    Moment,
}

/// Revokes the key of an ApiKey that is being deleted, and lets the ApiKey go.
pub async fn run(key: &ApiKey, context: &Context, now: Timestamp) -> Result<Action, KeyError> {
    if !key
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == finalizer::NAME)
    {
        return Ok(Action::await_change());
    }
    context.unrevealed.forget(key);
    let place = key.status.as_ref().and_then(|status| status.api.clone());
    if let Some(place) = &place {
        match revoke(key, place, context).await? {
            Ok(()) => {}
            Err(Hindrance::Moment) => return Ok(Action::requeue(report::TOLD_AFTER)),
            Err(hindrance) => {
                tell(key, hindrance, context, now).await?;
                return Ok(Action::requeue(RETRY));
            }
        }
    }
    let about = kube::Resource::object_ref(key, &());
    finalizer::remove(key, &context.api(&key.namespace().unwrap_or_default())).await?;
    if let Some(open) = place.and_then(|place| context.directories.get(&place)) {
        open.waits.forget(&record::owner(key));
    }
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

/// Takes every hash of the ApiKey out of the directory; done once no gate can accept them any more.
async fn revoke(
    key: &ApiKey,
    place: &IssuedAt,
    context: &Context,
) -> Result<Result<(), Hindrance>, KeyError> {
    let owner = record::owner(key);
    let changes: Vec<Change> = hashes(key)
        .into_iter()
        .map(|hash| Change::Remove {
            hash,
            owner: owner.clone(),
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
        Err(message) => return Ok(Err(Hindrance::Away(message))),
    };
    let target = Target {
        context,
        place,
        open: &open,
    };
    open.waits.announce(&owner, &changes, Instant::now());
    match target.apply(&changes).await {
        Ok(applied) => Ok(match open.waits.confirm(&owner, applied, Instant::now()) {
            Standing::InForce => Ok(()),
            Standing::Awaiting { since, .. } if since.elapsed() < report::TOLD_AFTER => {
                Err(Hindrance::Moment)
            }
            Standing::Awaiting { pods, .. } => Err(Hindrance::Gates(pods)),
        }),
        Err(KeyError::Directory(error)) => Ok(Err(Hindrance::Away(format!(
            "{error}: the key is revoked as soon as that works"
        )))),
        Err(error) => Err(error),
    }
}

/// Without a WaterDataApi nobody knows where its Redis was. Without a gate nothing accepts the key,
/// and the next installation sweeps the directory.
async fn gates_are_gone(
    place: &IssuedAt,
    context: &Context,
) -> Result<Result<(), Hindrance>, KeyError> {
    let gates = gate_pods(&context.api::<Pod>(&place.namespace), &place.name).await?;
    let names: BTreeSet<String> = gates.into_iter().map(|gate| gate.name).collect();
    Ok(if names.is_empty() {
        Ok(())
    } else {
        Err(Hindrance::Gates(names))
    })
}

/// Every hash that the directory may hold for the ApiKey.
fn hashes(key: &ApiKey) -> Vec<KeyHash> {
    let brought = key.spec.material.hash.as_ref();
    let brought: Option<KeyHash> = brought.and_then(|brought| brought.sha256.parse().ok());
    let mut hashes = key.status.as_ref().map(record::hashes).unwrap_or_default();
    hashes.extend(brought);
    hashes.sort();
    hashes.dedup();
    hashes
}

/// Says in the status what the deletion waits for.
async fn tell(
    key: &ApiKey,
    hindrance: Hindrance,
    context: &Context,
    now: Timestamp,
) -> Result<(), KeyError> {
    let (message, pods) = match hindrance {
        Hindrance::Away(message) => (message, BTreeSet::new()),
        Hindrance::Gates(pods) => (report::awaiting(&pods), pods),
        Hindrance::Moment => return Ok(()),
    };
    let mut changed = key.status.clone().unwrap_or_default();
    let outcome = Outcome::Underway(Reason::Deleting, message.clone());
    let mut findings = vec![Finding::lacks(Aspect::Synced, Reason::Deleting, message)];
    findings.extend(outcome.findings());
    let generation = key.metadata.generation.unwrap_or_default();
    let told = crate::conditions::stated(&changed.conditions, findings, generation, now);
    changed
        .conditions
        .retain(|condition| told.iter().all(|new| new.kind != condition.kind));
    changed.conditions.extend(told);
    changed.observed_generation = Some(generation);
    changed.waiting_for = report::named(&pods);
    status::write(key, changed, context).await?;
    Ok(())
}
