//! Writes a report: a status when something changed, and one event for each transition.

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use water_domain::Timestamp;
use water_resources::api_key::ApiKeyStatus;
use water_resources::condition::ConditionStatus;
use water_resources::{ApiKey, Condition};

use super::record;
use super::subject::Subject;
use super::verdict::{InForce, Report};
use crate::client::{record_params, stored};
use crate::conditions::{
    ConditionType, Finding, RECORD_MANAGER, Readiness, Reason, find, holds, stated,
};
use crate::context::Context;
use crate::events::Transition;

/// The status that a report makes of the one before.
pub fn status(
    before: ApiKeyStatus,
    report: &Report,
    generation: i64,
    now: Timestamp,
) -> ApiKeyStatus {
    let mut findings = report.findings.clone();
    findings.extend(report.outcome.iter().flat_map(Readiness::findings));
    let told = stated(&before.conditions, findings, generation, now);
    let mut conditions = joined(&before.conditions, told);
    // It is there while it is true.
    let is_degraded = |finding: &Finding| finding.aspect == ConditionType::Degraded;
    if !report.findings.iter().any(is_degraded) {
        conditions.retain(|condition| condition.kind != ConditionType::Degraded.as_str());
    }
    let status = ApiKeyStatus {
        observed_generation: Some(generation),
        last_acknowledged_state: report
            .outcome
            .as_ref()
            .and_then(acknowledged_state)
            .or(before.last_acknowledged_state),
        // As many names as there is room for.
        waiting_for: report.waiting_for.iter().take(100).cloned().collect(),
        conditions,
        ..before
    };
    let Some(InForce {
        api,
        plan,
        ledger,
        issued,
        next_rotation,
        secret,
        last_used,
    }) = report.in_force.clone()
    else {
        // Until then the next leader must know what else the directory may hold.
        return status;
    };
    let (secret_name, secret_resource_version) = secret.unzip();
    // Nothing else is published, whatever it named before.
    let unnamed = ApiKeyStatus {
        current: None,
        previous: None,
        unrevealed: Vec::new(),
        ..status
    };
    let named = record::named(unnamed, &ledger, &issued);
    ApiKeyStatus {
        api,
        plan: Some(plan.to_string()),
        key_id: named.current.as_ref().map(|current| current.key_id.clone()),
        next_rotation_time: next_rotation,
        secret_name,
        secret_resource_version: secret_resource_version.flatten(),
        last_used_time: last_used.max(named.last_used_time),
        ..named
    }
}

/// The status after a pass that was given up: nobody knows what the directory holds. What was reported of this
/// generation as in force, or as somebody's turn, stays in addition. Otherwise the ApiKey is not ready.
pub fn interrupted(
    before: ApiKeyStatus,
    outcome: &Readiness,
    generation: i64,
    now: Timestamp,
) -> ApiKeyStatus {
    let is_reported = before.observed_generation == Some(generation)
        && [ConditionType::Ready, ConditionType::Stalled]
            .iter()
            .any(|aspect| holds(&before.conditions, *aspect));
    let mut findings = vec![Finding::unknown(
        ConditionType::Synced,
        outcome.reason(),
        outcome.message(),
    )];
    if !is_reported {
        findings.extend(outcome.findings());
    }
    let told = stated(&before.conditions, findings, generation, now);
    ApiKeyStatus {
        observed_generation: Some(generation),
        conditions: joined(&before.conditions, told),
        ..before
    }
}

/// Joins conditions; of two of one kind the later one stays.
fn joined(before: &[Condition], told: Vec<Condition>) -> Vec<Condition> {
    let is_kept = |old: &&Condition| told.iter().all(|new| new.kind != old.kind);
    let kept: Vec<Condition> = before.iter().filter(is_kept).cloned().collect();
    kept.into_iter().chain(told).collect()
}

/// Replaces the status, in the version that was read.
pub async fn put(key: &ApiKey, status: ApiKeyStatus, context: &Context) -> kube::Result<()> {
    let changed = ApiKey {
        status: Some(status),
        ..key.clone()
    };
    let api = context.api::<ApiKey>(&key.namespace().unwrap_or_default());
    let written = api
        .replace_status(&key.name_any(), &record_params(), &changed)
        .await?;
    context.memory.keep_written(&written);
    Ok(())
}

/// The state that every gate has acknowledged; `None` while a change waits.
fn acknowledged_state(outcome: &Readiness) -> Option<String> {
    match outcome {
        Readiness::InForce(reason, _) | Readiness::Stuck(reason @ Reason::Expired, _) => {
            Some(reason.as_str().to_owned())
        }
        _ => None,
    }
}

/// Writes the status if it changed, then reports what it changed from. The version that was read makes the write fail
/// when somebody wrote in between, so that no transition is reported twice.
pub async fn write(subject: &Subject, status: ApiKeyStatus, context: &Context) -> kube::Result<()> {
    if subject.status == status && !subject.is_misnamed {
        return Ok(());
    }
    let happened = transitions(&subject.status, &status);
    if let Ok(key) = &subject.key {
        put(key, status, context).await?;
    } else {
        let mut patch = json!({
            "metadata": { "resourceVersion": subject.meta.resource_version },
            "status": {
                "observedGeneration": status.observed_generation,
                "waitingFor": status.waiting_for,
                "conditions": status.conditions,
            },
        });
        if subject.is_misnamed {
            patch["status"]["api"] = json!(status.api);
        }
        let params = PatchParams::apply(RECORD_MANAGER);
        let api = stored::<ApiKey>(&context.client, subject.namespace());
        api.patch_status(subject.name(), &params, &Patch::Merge(patch))
            .await?;
    }
    context.events.report(&subject.reference(), &happened);
    Ok(())
}

/// Whether a status names other keys than the one before. Passes decide by these.
pub fn names_other_keys(before: &ApiKeyStatus, after: &ApiKeyStatus) -> bool {
    let same = before.api == after.api
        && before.key_id == after.key_id
        && before.current == after.current
        && before.previous == after.previous
        && before.unrevealed == after.unrevealed;
    !same
}

/// Condition with the reason for which the keys of a status are withdrawn.
fn withdrawn(status: &ApiKeyStatus) -> Option<&Condition> {
    let reasons = [Reason::NamespaceNotAdmitted, Reason::AccountNotBound].map(Reason::as_str);
    let refused = refused(status).filter(|_| status.key_id.is_some());
    refused.filter(|refused| reasons.contains(&refused.reason.as_str()))
}

/// Events between two statuses.
pub fn transitions(before: &ApiKeyStatus, after: &ApiKeyStatus) -> Vec<Transition> {
    let (was, is) = (
        before.last_acknowledged_state.as_deref(),
        after.last_acknowledged_state.as_deref(),
    );
    let became = |reason: Reason| is == Some(reason.as_str()) && was != is;
    let ceased = |reason: Reason| was == Some(reason.as_str()) && was != is;
    let mut happened: Vec<Transition> = issue(before, after).into_iter().collect();
    happened.extend(other_plan(before, after));
    if became(Reason::Suspended) {
        happened.push(Transition::normal(
            "KeySuspended",
            "the key is refused until it is resumed",
        ));
    }
    if ceased(Reason::Suspended) && holds(&after.conditions, ConditionType::Ready) {
        happened.push(Transition::normal(
            "KeyResumed",
            "the key is no longer suspended",
        ));
    }
    if ceased(Reason::Expired) && is == Some(Reason::Active.as_str()) {
        happened.push(Transition::normal(
            "KeyRenewed",
            "the key can be used: spec.expirationTime is to come",
        ));
    }
    if became(Reason::NotYetValid) && was == Some(Reason::Active.as_str()) {
        happened.push(Transition::normal(
            "KeyPostponed",
            "the key is refused until spec.notBefore",
        ));
    }
    if ceased(Reason::NotYetValid) && is == Some(Reason::Active.as_str()) {
        happened.push(Transition::normal(
            "KeyActivated",
            "the key can be used from now on",
        ));
    }
    if became(Reason::Expired) {
        happened.push(Transition::warning(
            "KeyExpired",
            "the key is refused: spec.expirationTime has passed",
        ));
    } else if let Some(stalled) = newly_refused(before, after)
        && stalled.reason != Reason::Expired.as_str()
    {
        let word = withdrawn(after).map_or(stalled.reason.as_str(), |_| "KeyWithdrawn");
        happened.push(Transition::warning(word, stalled.message.clone()));
    }
    if withdrawn(before).is_some() && refused(after).is_none() {
        happened.push(Transition::normal(
            "KeyAdmitted",
            "the key is admitted and published again",
        ));
    } else if let Some(refused) = no_longer_refused(before, after) {
        let note = format!(
            "what the ApiKey declares is accepted again, {} before",
            refused.reason
        );
        happened.push(Transition::normal("Recovered", note));
    }
    happened.extend(newly_degraded(before, after));
    happened
}

/// Event about something that begins to be wrong, apart from the key.
fn newly_degraded(before: &ApiKeyStatus, after: &ApiKeyStatus) -> Option<Transition> {
    let is = find(&after.conditions, ConditionType::Degraded)?;
    let was = find(&before.conditions, ConditionType::Degraded);
    let is_new = was.is_none_or(|was| was.reason != is.reason);
    is_new.then(|| Transition::warning(&is.reason, &is.message))
}

/// Condition for which an issued key was refused, once it is accepted. The end of an expiry or a revocation and another
/// key have separate events.
fn no_longer_refused<'a>(before: &'a ApiKeyStatus, after: &ApiKeyStatus) -> Option<&'a Condition> {
    let reconciling = find(&after.conditions, ConditionType::Reconciling);
    let awaits_gates = after.unrevealed.is_empty()
        && reconciling.is_some_and(|now| now.reason == Reason::AwaitingGates.as_str());
    let is_accepted = awaits_gates || holds(&after.conditions, ConditionType::Ready);
    let is_same = before.key_id.is_some() && before.key_id == after.key_id;
    let others = [Reason::Expired, Reason::RevokedInStore].map(Reason::as_str);
    let was = refused(before).filter(|was| !others.contains(&was.reason.as_str()));
    was.filter(|_| is_accepted && is_same && refused(after).is_none())
}

/// The event about a first or another key in the Secret. A first key that is already expired gets none: KeyExpired
/// follows.
fn issue(before: &ApiKeyStatus, after: &ApiKeyStatus) -> Option<Transition> {
    let id = after.key_id.as_ref()?;
    match &before.key_id {
        None if after.last_acknowledged_state.as_deref() == Some(Reason::Expired.as_str()) => None,
        None => {
            // The reason for which it is refused for now, if it is.
            let ready = find(&after.conditions, ConditionType::Ready);
            let ready = ready.filter(|ready| ready.reason != Reason::Active.as_str());
            let note = match ready {
                Some(ready) => format!("key {id} is issued: {}", ready.message),
                None => format!("key {id} can be used"),
            };
            Some(Transition::normal("KeyIssued", note))
        }
        Some(old) if old == id => None,
        Some(old) => {
            let until = after.previous.as_ref();
            let until = until.filter(|previous| previous.issued.key_id == *old);
            let end = until.map_or("is refused".into(), |previous| {
                format!("works until {}", previous.retire_time)
            });
            let note = format!("key {id} took the place of {old}, which {end}");
            let is_reissue = after.reissues.iter().any(|reissue| reissue.key_id == *id);
            Some(if is_reissue {
                let note = format!("the Secret was gone or changed: {note}");
                Transition::warning("SecretReissued", note)
            } else {
                Transition::normal("KeyRotated", note)
            })
        }
    }
}

/// The event about another plan, once it is in force.
fn other_plan(before: &ApiKeyStatus, after: &ApiKeyStatus) -> Option<Transition> {
    let (id, old, new) = (
        after.key_id.as_ref()?,
        before.plan.as_ref()?,
        after.plan.as_ref()?,
    );
    let note = || format!("key {id} has the plan {new} instead of {old}");
    (old != new).then(|| Transition::normal("PlanChanged", note()))
}

/// Condition that somebody has to know of: a stalled key, or one that no WaterDataApi admits.
fn newly_refused<'a>(before: &ApiKeyStatus, after: &'a ApiKeyStatus) -> Option<&'a Condition> {
    // An edit may be refused for the same reason in other words: another plan, another hash.
    let is_edited = before.observed_generation != after.observed_generation;
    let is_new = |is: &&Condition| {
        refused(before)
            .is_none_or(|was| was.reason != is.reason || is_edited && was.message != is.message)
    };
    refused(after).filter(is_new)
}

fn refused(status: &ApiKeyStatus) -> Option<&Condition> {
    let shows = |aspect, shown| {
        find(&status.conditions, aspect).filter(|condition| condition.status == shown)
    };
    shows(ConditionType::Stalled, ConditionStatus::True)
        .or_else(|| shows(ConditionType::Accepted, ConditionStatus::False))
}

#[cfg(test)]
mod tests;
