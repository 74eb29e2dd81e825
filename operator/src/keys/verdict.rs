//! Report of a verdict in the status: findings and their words.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use water_domain::{KeyHash, PlanName, REISSUES, Timestamp};
use water_operator_core::key::facts::Secret;
use water_operator_core::key::ledger::Ledger;
use water_operator_core::key::step::{Hindrance, METADATA, Refusal, Verdict};
use water_resources::api_key::ApiName;
use water_resources::condition::{Condition, ConditionStatus};

use super::error::{KeyError, outcome};
use super::gather::PassInput;
use super::metadata::ADOPT;
use super::readiness::readiness;
use super::record::Issuance;
use super::subject::REINSTATE;
use super::times::next_rotation;
use crate::client::ApiFailure;
use crate::conditions::{ConditionType, Finding, Readiness, Reason, find};
use crate::context::Context;
use crate::directories::duties::{Duty, DutyFailure};
use crate::directories::gates::AwaitedPods;
use crate::directories::pending::DeclarationState;
use crate::installation::render::GATE_GRACE;

/// Time after which the status reports a wait for gates. Most waits are over by then.
pub const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Findings of a pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// `Accepted`, `SecretReady` and `Synced`, if anything is found out about them.
    pub findings: Vec<Finding>,
    /// `Ready`, `Reconciling` and `Stalled`; `None`: they stay as they are.
    pub outcome: Option<Readiness>,
    /// The gates' pods that have not acknowledged what was declared.
    pub waiting_for: BTreeSet<String>,
    /// The key that is in force at every gate, and that its owner can have.
    pub in_force: Option<InForce>,
}

/// Facts that a status reports of a key in force.
#[derive(Clone, PartialEq, Debug)]
pub struct InForce {
    pub api: Option<ApiName>,
    /// Plan of the ApiKey's key.
    pub plan: PlanName,
    /// Keys in force: the ApiKey's, and the one that works besides.
    pub ledger: Ledger<KeyHash>,
    /// Issues of these keys.
    pub issued: BTreeMap<KeyHash, Issuance>,
    /// Time at which it will be replaced by itself.
    pub next_rotation: Option<Timestamp>,
    /// Name and version of its Secret.
    pub secret: Option<(String, Option<String>)>,
    /// Last use, if the status does not show that yet.
    pub last_used: Option<Timestamp>,
}

impl Report {
    fn new(findings: Vec<Finding>, outcome: impl Into<Option<Readiness>>) -> Self {
        Self {
            findings,
            outcome: outcome.into(),
            waiting_for: BTreeSet::new(),
            in_force: None,
        }
    }
}

/// The verdict after a failed step. An error that no status can explain is returned.
pub fn of_failure(
    gathered: &mut PassInput,
    error: KeyError,
    context: &Context,
) -> Result<Verdict<KeyHash>, KeyError> {
    match error {
        KeyError::Directory(error) => {
            gathered.trouble = Some(outcome(&error));
            Ok(Verdict::Held(Hindrance::Directory))
        }
        KeyError::Rejected(message) => {
            context.metrics.api_server_failure(ApiFailure::Refused);
            Ok(Verdict::Refused(Refusal::SecretRejected(message)))
        }
        KeyError::Undone(what) => {
            context.metrics.api_server_failure(ApiFailure::Undone);
            Ok(Verdict::Refused(Refusal::WriteConflict(what)))
        }
        error => Err(error),
    }
}

/// Whether the status has to be written: not for a wait for gates that has just begun.
pub fn is_news(gathered: &PassInput, verdict: &Verdict<KeyHash>) -> bool {
    let state = gathered.reading.as_ref().map(|reading| &reading.state);
    match (verdict, state) {
        (Verdict::Awaiting, Some(DeclarationState::Awaiting { since, .. })) => {
            since.elapsed() >= TOLD_AFTER
        }
        _ => true,
    }
}

/// The report of an ApiKey that is being deleted: what it waits for.
pub fn deleting(gathered: &PassInput, verdict: &Verdict<KeyHash>) -> Report {
    let awaited = match verdict {
        Verdict::Held(Hindrance::GatesRemain) => AwaitedPods {
            pods: gathered.remaining.clone(),
            ..AwaitedPods::default()
        },
        _ => awaited(gathered),
    };
    let (reason, message) = match (verdict, &gathered.trouble) {
        (Verdict::Held(Hindrance::Directory), Some(trouble)) => {
            let trouble = trouble.message();
            let message = format!("{trouble}: the key is revoked as soon as that works");
            (Reason::Deleting, message)
        }
        (Verdict::Refused(Refusal::WriteConflict(what)), _) => {
            (Reason::WriteConflict, undone(what))
        }
        _ => (Reason::Deleting, awaiting(gathered, &awaited)),
    };
    let outcome = Readiness::Underway(reason, message);
    Report {
        waiting_for: awaited.pods,
        ..Report::new(vec![lacks(ConditionType::Synced, &outcome)], outcome)
    }
}

/// The report of an ApiKey that lives.
pub fn living(gathered: &PassInput, verdict: &Verdict<KeyHash>, now: Timestamp) -> Report {
    let awaited = awaited(gathered);
    let report = match verdict {
        Verdict::InForce(hash) => in_force(gathered, hash).unwrap_or_else(|| {
            let message = "what is in force is read again".into();
            not_synced(gathered, Readiness::Underway(Reason::Waiting, message))
        }),
        Verdict::Refused(refusal) => refused(gathered, refusal),
        Verdict::Held(Hindrance::Directory) => {
            let unknown =
                || Readiness::Underway(Reason::StoreUnavailable, "it cannot be read".into());
            away(
                gathered,
                gathered.trouble.clone().unwrap_or_else(unknown),
                now,
            )
        }
        Verdict::Held(Hindrance::SecretRemains) => {
            let name = gathered.subject.secret_name().unwrap_or_default();
            let message = format!(
                "the Secret {name} of a deleted ApiKey of this name is still there: a key is issued once it is \
                 collected"
            );
            without_secret(gathered, Readiness::Underway(Reason::Waiting, message))
        }
        Verdict::Held(Hindrance::Terminating) => {
            let message = "the namespace is being deleted: no key is issued in it";
            without_secret(
                gathered,
                Readiness::Underway(Reason::Waiting, message.into()),
            )
        }
        _ => {
            let message = awaiting(gathered, &awaited);
            let outcome = Readiness::Underway(Reason::AwaitingGates, message);
            let findings = vec![accepted(gathered), secret_ready(gathered), holds_declared()];
            Report::new(findings, outcome)
        }
    };
    let mut findings = report.findings;
    findings.extend(gathered.unlabelled.clone());
    Report {
        findings,
        waiting_for: awaited.pods,
        ..report
    }
}

/// Report of a key in force; `None` if something is missing that the decision needs.
fn in_force(gathered: &PassInput, hash: &KeyHash) -> Option<Report> {
    let issued = gathered.issued.get(hash)?;
    let reading = gathered.reading.as_ref()?;
    let record = reading.records.get(hash)?.as_ref()?;
    let mut plans = gathered.api.as_ref()?.spec.plans.iter();
    let plan = plans.find(|plan| plan.name == record.plan)?;
    let outcome = readiness(record, plan, reading.now);
    let secret = gathered.subject.secret_name();
    let version = gathered.secret.as_ref();
    let version = version.and_then(|secret| secret.meta.resource_version.clone());
    let brought = "the key was brought along by its hash";
    let secret_ready = match &secret {
        Some(name) => secret_holds(name),
        None => Finding::holds(ConditionType::SecretReady, Reason::NotNeeded, brought),
    };
    let in_force = InForce {
        api: gathered.place.clone(),
        plan: record.plan.clone(),
        ledger: gathered.facts.confirmed(*hash),
        issued: gathered.issued.clone(),
        next_rotation: next_rotation(gathered, issued),
        secret: secret.map(|name| (name, version)),
        last_used: reading.open.last_use(&issued.key_id),
    };
    let findings = vec![accepted(gathered), secret_ready, holds_declared()];
    Some(Report {
        in_force: Some(in_force),
        ..Report::new(findings, outcome)
    })
}

fn refused(gathered: &PassInput, refusal: &Refusal) -> Report {
    let stuck = Readiness::Stuck;
    let name = || gathered.subject.secret_name().unwrap_or_default();
    let outcome = match refusal {
        Refusal::NotAdmitted => return not_admitted(gathered),
        Refusal::Undecodable => {
            let error = gathered.subject.key.as_ref().err();
            let error = error.map_or("", String::as_str);
            let message = format!("the ApiKey cannot be read: {error}");
            return Report::new(Vec::new(), stuck(Reason::Undecodable, message));
        }
        Refusal::SecretConflict | Refusal::NotAdopted => {
            return without_secret(gathered, conflict(gathered));
        }
        Refusal::SecretRejected(error) => {
            let message = format!(
                "the API server does not accept the Secret {}: {error}; change the quota or policy that it names, \
                 delete the Secret if it is immutable, or create another ApiKey with another \
                 spec.material.generated.secretName if it is the name",
                name()
            );
            return without_secret(gathered, stuck(Reason::Rejected, message));
        }
        Refusal::WriteConflict(METADATA) => {
            return without_secret(gathered, stuck(Reason::WriteConflict, undone(METADATA)));
        }
        Refusal::WriteConflict(what) => stuck(Reason::WriteConflict, undone(what)),
        Refusal::Revoked(at) => stuck(
            Reason::RevokedInStore,
            match gathered.subject.brought {
                Some(hash) => format!(
                    "spec.material.hash.sha256 was revoked before: bring another key, or annotate the ApiKey with \
                     {REINSTATE}: {}@{at} to accept it again",
                    hash.key_id()
                ),
                None => "the key in the Secret was revoked before: raise spec.rotation.revision to have another key \
                         issued"
                    .into(),
            },
        ),
        Refusal::OwnerRevoked => stuck(
            Reason::RevokedInStore,
            "this ApiKey was deleted before and came back: create it again under another name".into(),
        ),
        Refusal::Taken => {
            let field = if gathered.facts.is_id_taken { "keyId" } else { "sha256" };
            let message = match gathered.subject.brought {
                Some(_) => format!(
                    "spec.material.hash.{field} is another ApiKey's: bring another key, or delete the other ApiKey"
                ),
                None => "the key in the Secret is another ApiKey's too: raise spec.rotation.revision to have another \
                         key issued"
                    .into(),
            };
            stuck(Reason::KeyConflict, message)
        }
        Refusal::ReissueLimit(until) => {
            let message = format!(
                "the Secret {} was deleted or changed {REISSUES} times within ten minutes: find out by whom; another \
                 key is issued at {until}, or as soon as spec.rotation.revision is raised",
                name()
            );
            return without_secret(gathered, stuck(Reason::ReissueLimit, message));
        }
    };
    not_synced(gathered, outcome)
}

/// The report while Redis does not answer. Gates serve a key without it for [`GATE_GRACE`], so one whose present
/// generation was in force stays ready for as long; then nobody knows.
fn away(gathered: &PassInput, trouble: Readiness, now: Timestamp) -> Report {
    if !gathered.is_served(now) || !matches!(trouble, Readiness::Underway(..)) {
        return not_synced(gathered, trouble);
    }
    let (reason, message) = (trouble.reason(), trouble.message().to_owned());
    let before = find(&gathered.subject.status.conditions, ConditionType::Synced);
    let is_over = is_over(before, now);
    let synced = Finding::unknown(ConditionType::Synced, reason, &message);
    let findings = vec![accepted(gathered), secret_ready(gathered), synced];
    Report::new(
        findings,
        is_over.then_some(Readiness::Unknown(reason, message)),
    )
}

/// Whether gates no longer serve a key that Redis has been away for since `Synced` became unknown.
fn is_over(synced: Option<&Condition>, now: Timestamp) -> bool {
    synced.is_some_and(|synced| {
        synced.status == ConditionStatus::Unknown
            && now >= synced.last_transition_time.plus(GATE_GRACE)
    })
}

/// Report of a directory that does not hold what is declared.
fn not_synced(gathered: &PassInput, outcome: Readiness) -> Report {
    let synced = lacks(ConditionType::Synced, &outcome);
    let findings = vec![accepted(gathered), secret_ready(gathered), synced];
    Report::new(findings, outcome)
}

/// Report of an ApiKey that is not admitted. A missing WaterDataApi may come by itself; anything else somebody has to
/// change.
fn not_admitted(gathered: &PassInput) -> Report {
    let (reason, message) = match &gathered.refusal {
        Some(refusal) => (refusal.reason, refusal.message.clone()),
        None => (
            Reason::ApiAmbiguous,
            "no WaterDataApi admits the key".into(),
        ),
    };
    let outcome = Readiness::refused(reason, message);
    let waits = |aspect| Finding::lacks(aspect, Reason::Waiting, "the key is not admitted");
    let waits = [
        waits(ConditionType::SecretReady),
        waits(ConditionType::Synced),
    ];
    let findings = [lacks(ConditionType::Accepted, &outcome)]
        .into_iter()
        .chain(waits);
    Report::new(findings.collect(), outcome)
}

/// Report of a Secret that blocks the key.
fn without_secret(gathered: &PassInput, outcome: Readiness) -> Report {
    let secret = lacks(ConditionType::SecretReady, &outcome);
    let findings = vec![accepted(gathered), secret, waits(ConditionType::Synced)];
    Report::new(findings, outcome)
}

/// Finding `Accepted`; always reported, since a rebuild leaves out keys that are not accepted.
fn accepted(gathered: &PassInput) -> Finding {
    if let Some(refusal) = &gathered.refusal {
        return Finding::lacks(ConditionType::Accepted, refusal.reason, &refusal.message);
    }
    let place = gathered.place.as_ref();
    let (namespace, name) = place.map_or(("", ""), |place| {
        (place.namespace.as_str(), place.name.as_str())
    });
    let message = format!("the WaterDataApi {namespace}/{name} admits the key");
    Finding::holds(ConditionType::Accepted, Reason::Admitted, message)
}

fn conflict(gathered: &PassInput) -> Readiness {
    let name = gathered.subject.secret_name().unwrap_or_default();
    let mut message = format!(
        "the Secret {name} exists and is not this ApiKey's: delete it, or create another ApiKey with another \
         spec.material.generated.secretName"
    );
    if let Secret::Orphan { content, .. } = gathered.facts.secret {
        message += &format!(
            "; only if both were restored from a backup, run water-operator adopt, or annotate the ApiKey with {ADOPT}: {}",
            content.hash.key_id()
        );
    }
    Readiness::Stuck(Reason::SecretConflict, message)
}

/// Finding `SecretReady`; always reported, since a rebuild keeps the published keys of an ApiKey with `SecretConflict`.
fn secret_ready(gathered: &PassInput) -> Finding {
    if gathered.facts.secret == Secret::Foreign {
        return lacks(ConditionType::SecretReady, &conflict(gathered));
    }
    let written = gathered.subject.status.secret_name.as_deref();
    written.map_or_else(|| waits(ConditionType::SecretReady), secret_holds)
}

fn secret_holds(name: &str) -> Finding {
    Finding::holds(
        ConditionType::SecretReady,
        Reason::Written,
        format!("the Secret {name} holds the key"),
    )
}

fn holds_declared() -> Finding {
    Finding::holds(
        ConditionType::Synced,
        Reason::Published,
        "the key directory holds what is declared",
    )
}

fn waits(aspect: ConditionType) -> Finding {
    Finding::lacks(aspect, Reason::Waiting, "an earlier step is not done")
}

/// The finding of an aspect that is not true because of an outcome.
fn lacks(aspect: ConditionType, outcome: &Readiness) -> Finding {
    Finding::lacks(aspect, outcome.reason(), outcome.message())
}

fn awaited(gathered: &PassInput) -> AwaitedPods {
    match gathered.reading.as_ref().map(|reading| &reading.state) {
        Some(DeclarationState::Awaiting { gates, since }) if since.elapsed() >= TOLD_AFTER => {
            gates.clone()
        }
        _ => AwaitedPods::default(),
    }
}

/// Message about writes that another controller or a webhook undoes.
fn undone(what: &str) -> String {
    format!(
        "another controller or a webhook undoes {what}: exempt ApiKeys and their Secrets from it; tried again after a \
         pause that grows to ten minutes, or as soon as the spec is edited"
    )
}

/// Names the gates that are waited for, in a sentence, and why they cannot be asked.
fn awaiting(gathered: &PassInput, awaited: &AwaitedPods) -> String {
    let reading = gathered.reading.as_ref();
    let unasked = reading.and_then(|reading| reading.open.failure(Duty::AskGates));
    let names = |pods: &BTreeSet<String>| {
        let names: Vec<&str> = pods.iter().map(String::as_str).collect();
        names.join(", ")
    };
    if awaited.pods.is_empty() {
        return match unasked {
            Some(DutyFailure { message, .. }) => format!(
                "the gates cannot be asked whether they have applied the change: {message}; tried again until it works"
            ),
            None => "the gates have not been asked yet whether they have applied the change".into(),
        };
    }
    let mut message = format!(
        "waiting for gates that have not acknowledged the change: {}",
        names(&awaited.pods)
    );
    if !awaited.elsewhere.is_empty() {
        let elsewhere = names(&awaited.elsewhere);
        message += &format!(
            "; of these, the key gate-url of Redis' Secret names or named another Redis to {elsewhere}: correct it \
             if it is wrong, let the rollout of the gates go on, or delete these pods, which are waited for until then"
        );
    }
    if let Some(failure) = unasked {
        message += &format!("; they cannot be asked again: {}", failure.message);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::stated;

    #[test]
    fn a_key_is_served_without_redis_for_the_gates_grace_of_two_minutes() {
        let at = |millis| Timestamp::from_millis(millis).unwrap();
        let aspect = ConditionType::Synced;
        let since_zero = |finding| stated(&[], vec![finding], 1, at(0)).remove(0);
        let unknown = since_zero(Finding::unknown(aspect, Reason::StoreUnavailable, ""));
        assert!(!is_over(Some(&unknown), at(119_999)));
        assert!(is_over(Some(&unknown), at(120_000)));
        // The grace begins when the condition becomes unknown.
        let synced = since_zero(Finding::holds(aspect, Reason::Published, ""));
        assert!(!is_over(Some(&synced), at(120_000)));
        assert!(!is_over(None, at(120_000)));
    }
}
