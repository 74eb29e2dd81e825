//! How a report is written: a status when something changed, and one event for each transition.

use kube::api::PostParams;
use kube::{Resource, ResourceExt};
use water_domain::Timestamp;

use super::report::Report;
use crate::conditions::{Aspect, Outcome, RECORD_MANAGER, Reason, find, holds, stated};
use crate::context::Context;
use crate::crd::api_key::ApiKeyStatus;
use crate::crd::condition::ConditionStatus;
use crate::crd::{ApiKey, Condition};
use crate::events::Happening;

/// The status that a report makes of `key`.
pub fn status(key: &ApiKey, report: &Report, now: Timestamp) -> ApiKeyStatus {
    let before = key.status.clone().unwrap_or_default();
    let generation = key.meta().generation.unwrap_or_default();
    let [ready, reconciling, stalled] = report.outcome.findings();
    let findings = vec![
        report.accepted.clone(),
        report.secret_ready.clone(),
        report.synced.clone(),
        ready,
        reconciling,
        stalled,
    ];
    let (secret_name, secret_resource_version) = report.secret.clone().unzip();
    ApiKeyStatus {
        observed_generation: Some(generation),
        api: report.api.clone(),
        standing: standing(&report.outcome).or(before.standing),
        key_id: match &report.current {
            Some(current) if report.revealed => Some(current.key_id.clone()),
            _ => before.key_id,
        },
        current: report.current.clone(),
        // Until the key is in force, the next leader must know what else the directory may hold.
        previous: before.previous.filter(|_| !report.revealed),
        unrevealed: if report.revealed {
            Vec::new()
        } else {
            before.unrevealed
        },
        secret_name,
        secret_resource_version: secret_resource_version.flatten(),
        last_used_time: report.last_used.max(before.last_used_time),
        next_rotation_time: None,
        waiting_for: report.waiting_for.clone(),
        conditions: stated(&before.conditions, findings, generation, now),
    }
}

/// How a key stands by an outcome that is in force; `None`: that is not settled.
fn standing(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::InForce(reason, _) | Outcome::Stuck(reason @ Reason::Expired, _) => {
            Some(reason.to_string())
        }
        _ => None,
    }
}

/// Writes the status if it changed, then reports what it changed from. The version that was read
/// makes the write fail when somebody wrote in between, so that no transition is told twice.
pub async fn write(key: &ApiKey, status: ApiKeyStatus, context: &Context) -> kube::Result<ApiKey> {
    if key.status.as_ref() == Some(&status) {
        return Ok(key.clone());
    }
    let before = key.status.clone().unwrap_or_default();
    let mut changed = key.clone();
    changed.status = Some(status);
    let params = PostParams {
        field_manager: Some(RECORD_MANAGER.into()),
        ..PostParams::default()
    };
    let api = context.api::<ApiKey>(&key.namespace().unwrap_or_default());
    let written = api
        .replace_status(&key.name_any(), &params, &changed)
        .await?;
    let happened = transitions(&before, &changed.status.unwrap_or_default());
    context
        .events
        .report(&written.object_ref(&()), &happened)
        .await;
    Ok(written)
}

/// What happened between two statuses.
pub fn transitions(before: &ApiKeyStatus, after: &ApiKeyStatus) -> Vec<Happening> {
    let (was, is) = (before.standing.as_deref(), after.standing.as_deref());
    let became = |reason: Reason| is == Some(reason.as_str()) && was != is;
    let ceased = |reason: Reason| was == Some(reason.as_str()) && was != is;
    let mut happened: Vec<Happening> = issue(before, after).into_iter().collect();
    if became(Reason::Suspended) {
        happened.push(Happening::normal(
            "KeySuspended",
            "the key is refused until it is resumed",
        ));
    }
    if ceased(Reason::Suspended) && holds(&after.conditions, Aspect::Ready) {
        happened.push(Happening::normal(
            "KeyResumed",
            "the key is no longer suspended",
        ));
    }
    if ceased(Reason::Expired) && is == Some(Reason::Active.as_str()) {
        happened.push(Happening::normal(
            "KeyRenewed",
            "the key can be used: spec.expirationTime is to come",
        ));
    }
    if became(Reason::Expired) {
        happened.push(Happening::warning(
            "KeyExpired",
            "the key is refused: spec.expirationTime has passed",
        ));
    } else if let Some(stalled) = newly_stalled(before, after)
        && stalled.reason != Reason::Expired.as_str()
    {
        let withdrawn = [Reason::NamespaceNotAdmitted, Reason::AccountNotBound]
            .iter()
            .any(|reason| stalled.reason == reason.as_str());
        let word = if withdrawn && after.key_id.is_some() {
            "KeyWithdrawn"
        } else {
            &stalled.reason
        };
        happened.push(Happening::warning(word, stalled.message.clone()));
    }
    happened
}

/// A key that its owner can have for the first time, or another one. Of a first one that has expired before there is
/// nothing to say but that.
fn issue(before: &ApiKeyStatus, after: &ApiKeyStatus) -> Option<Happening> {
    let id = after.key_id.as_ref()?;
    match &before.key_id {
        None if after.standing.as_deref() == Some(Reason::Expired.as_str()) => None,
        None => Some(Happening::normal(
            "KeyIssued",
            format!("key {id} can be used"),
        )),
        Some(old) if old == id => None,
        Some(old) if after.secret_name.is_some() => Some(Happening::warning(
            "SecretReissued",
            format!("the Secret was gone: key {id} took the place of {old}"),
        )),
        Some(old) => Some(Happening::normal(
            "KeyRotated",
            format!("key {id} took the place of {old}"),
        )),
    }
}

fn newly_stalled<'a>(before: &ApiKeyStatus, after: &'a ApiKeyStatus) -> Option<&'a Condition> {
    let stalled = |status: &ApiKeyStatus| {
        find(&status.conditions, Aspect::Stalled)
            .filter(|condition| condition.status == ConditionStatus::True)
            .map(|condition| condition.reason.clone())
    };
    (stalled(after).is_some() && stalled(after) != stalled(before))
        .then(|| find(&after.conditions, Aspect::Stalled))
        .flatten()
}

#[cfg(test)]
mod tests;
