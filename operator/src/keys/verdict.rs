//! What a verdict says in the status: findings and their words.

use std::collections::BTreeSet;
use std::time::Duration;

use water_domain::{KeyHash, Timestamp};
use water_resources::api_key::{ApiName, REISSUES, RetiringKey};

use super::error::{KeyError, outcome};
use super::gather::Gathered;
use super::readiness::readiness;
use super::record::Issued;
use super::seen::Secret;
use super::step::{Hindrance, Refusal, Verdict};
use super::subject::REINSTATE;
use super::times::{next_rotation, previous};
use crate::conditions::{Aspect, Finding, Readiness, Reason};
use crate::directories::gates::AwaitedPods;
use crate::directories::pending::DeclarationState;

/// The status reports a wait for gates after this long. Most waits are over by then.
pub const TOLD_AFTER: Duration = Duration::from_secs(1);

/// What a pass found out.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// `Accepted`, `SecretReady` and `Synced`, as far as anything is found out about them.
    pub findings: Vec<Finding>,
    /// `Ready`, `Reconciling` and `Stalled`.
    pub outcome: Readiness,
    /// The gates' pods that have not acknowledged what was declared.
    pub waiting_for: BTreeSet<String>,
    /// The key that is in force at every gate, and that its owner can have.
    pub in_force: Option<InForce>,
}

/// What a status says of a key in force.
#[derive(Clone, PartialEq, Debug)]
pub struct InForce {
    pub issued: Issued,
    pub api: Option<ApiName>,
    /// The key before it, while that works.
    pub previous: Option<RetiringKey>,
    /// When it will be replaced by itself.
    pub next_rotation: Option<Timestamp>,
    /// Its Secret's name and version.
    pub secret: Option<(String, Option<String>)>,
    /// Its last use, if the status does not show that yet.
    pub last_used: Option<Timestamp>,
}

impl Report {
    fn new(findings: Vec<Finding>, outcome: Readiness) -> Self {
        Self {
            findings,
            outcome,
            waiting_for: BTreeSet::new(),
            in_force: None,
        }
    }
}

/// The verdict after a failed step. An error that no status can explain is returned.
pub fn of_failure(gathered: &mut Gathered, error: KeyError) -> Result<Verdict<KeyHash>, KeyError> {
    match error {
        KeyError::Directory(error) => {
            gathered.trouble = Some(outcome(&error));
            Ok(Verdict::Held(Hindrance::Directory))
        }
        KeyError::Rejected(message) => Ok(Verdict::Refused(Refusal::SecretRejected(message))),
        error => Err(error),
    }
}

/// Whether the status is to be written: not for a wait for gates that has just begun.
pub fn is_news(gathered: &Gathered, verdict: &Verdict<KeyHash>) -> bool {
    let state = gathered.reading.as_ref().map(|reading| &reading.state);
    match (verdict, state) {
        (Verdict::Underway | Verdict::Released, _) => false,
        (Verdict::Awaiting, Some(DeclarationState::Awaiting { since, .. })) => {
            since.elapsed() >= TOLD_AFTER
        }
        _ => true,
    }
}

/// The report of an ApiKey that is being deleted: what it waits for.
pub fn deleting(gathered: &Gathered, verdict: &Verdict<KeyHash>) -> Report {
    let awaited = match verdict {
        Verdict::Held(Hindrance::GatesRemain) => AwaitedPods {
            pods: gathered.remaining.clone(),
            ..AwaitedPods::default()
        },
        _ => awaited(gathered),
    };
    let message = match (verdict, &gathered.trouble) {
        (Verdict::Held(Hindrance::Directory), Some(trouble)) => {
            let trouble = trouble.message();
            format!("{trouble}: the key is revoked as soon as that works")
        }
        _ => awaiting(&awaited),
    };
    let outcome = Readiness::Underway(Reason::Deleting, message);
    Report {
        waiting_for: awaited.pods,
        ..Report::new(vec![lacks(Aspect::Synced, &outcome)], outcome)
    }
}

/// The report of an ApiKey that lives.
pub fn living(gathered: &Gathered, verdict: &Verdict<KeyHash>) -> Report {
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
            not_synced(gathered, gathered.trouble.clone().unwrap_or_else(unknown))
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
            let outcome = Readiness::Underway(Reason::AwaitingGates, awaiting(&awaited));
            let findings = vec![accepted(gathered), secret_ready(gathered), holds_declared()];
            Report::new(findings, outcome)
        }
    };
    Report {
        waiting_for: awaited.pods,
        ..report
    }
}

/// `None` if something is missing that the decision needs.
fn in_force(gathered: &Gathered, hash: &KeyHash) -> Option<Report> {
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
        None => Finding::holds(Aspect::SecretReady, Reason::NotNeeded, brought),
    };
    let in_force = InForce {
        issued: issued.clone(),
        api: gathered.place.clone(),
        previous: previous(gathered, hash),
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

fn refused(gathered: &Gathered, refusal: &Refusal) -> Report {
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
        Refusal::SecretConflict => return without_secret(gathered, conflict(gathered)),
        Refusal::SecretRejected(error) => {
            let message = format!("the API server does not accept the Secret {}: {error}", name());
            return without_secret(gathered, stuck(Reason::Rejected, message));
        }
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
            let field = if gathered.seen.is_id_taken { "keyId" } else { "sha256" };
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

/// The directory does not hold what is declared.
fn not_synced(gathered: &Gathered, outcome: Readiness) -> Report {
    let synced = lacks(Aspect::Synced, &outcome);
    let findings = vec![accepted(gathered), secret_ready(gathered), synced];
    Report::new(findings, outcome)
}

/// A missing WaterDataApi may come by itself; anything else somebody has to change.
fn not_admitted(gathered: &Gathered) -> Report {
    let (reason, message) = match &gathered.refusal {
        Some(refusal) => (refusal.reason, refusal.message.clone()),
        None => (
            Reason::ApiAmbiguous,
            "no WaterDataApi admits the key".into(),
        ),
    };
    let outcome = Readiness::refused(reason, message);
    let waits = |aspect| Finding::lacks(aspect, Reason::Waiting, "the key is not admitted");
    let waits = [waits(Aspect::SecretReady), waits(Aspect::Synced)];
    let findings = [lacks(Aspect::Accepted, &outcome)].into_iter().chain(waits);
    Report::new(findings.collect(), outcome)
}

/// The Secret stands in the way.
fn without_secret(gathered: &Gathered, outcome: Readiness) -> Report {
    let secret = lacks(Aspect::SecretReady, &outcome);
    let findings = vec![accepted(gathered), secret, waits(Aspect::Synced)];
    Report::new(findings, outcome)
}

/// Always reported, since a rebuild leaves out keys that are not accepted.
fn accepted(gathered: &Gathered) -> Finding {
    if let Some(refusal) = &gathered.refusal {
        return Finding::lacks(Aspect::Accepted, refusal.reason, &refusal.message);
    }
    let place = gathered.place.as_ref();
    let (namespace, name) = place.map_or(("", ""), |place| {
        (place.namespace.as_str(), place.name.as_str())
    });
    let message = format!("the WaterDataApi {namespace}/{name} admits the key");
    Finding::holds(Aspect::Accepted, Reason::Admitted, message)
}

fn conflict(gathered: &Gathered) -> Readiness {
    let name = gathered.subject.secret_name().unwrap_or_default();
    let message = format!(
        "the Secret {name} exists and is not this ApiKey's: delete it, or create another ApiKey with another \
         spec.material.generated.secretName"
    );
    Readiness::Stuck(Reason::SecretConflict, message)
}

/// Always reported, since a rebuild keeps the published keys of an ApiKey with `SecretConflict`.
fn secret_ready(gathered: &Gathered) -> Finding {
    if gathered.seen.secret == Secret::Foreign {
        return lacks(Aspect::SecretReady, &conflict(gathered));
    }
    let written = gathered.subject.status.secret_name.as_deref();
    written.map_or_else(|| waits(Aspect::SecretReady), secret_holds)
}

fn secret_holds(name: &str) -> Finding {
    Finding::holds(
        Aspect::SecretReady,
        Reason::Written,
        format!("the Secret {name} holds the key"),
    )
}

fn holds_declared() -> Finding {
    Finding::holds(
        Aspect::Synced,
        Reason::Published,
        "the key directory holds what is declared",
    )
}

fn waits(aspect: Aspect) -> Finding {
    Finding::lacks(aspect, Reason::Waiting, "an earlier step is not done")
}

/// The finding of an aspect that is not true because of an outcome.
fn lacks(aspect: Aspect, outcome: &Readiness) -> Finding {
    Finding::lacks(aspect, outcome.reason(), outcome.message())
}

fn awaited(gathered: &Gathered) -> AwaitedPods {
    match gathered.reading.as_ref().map(|reading| &reading.state) {
        Some(DeclarationState::Awaiting { gates, since }) if since.elapsed() >= TOLD_AFTER => {
            gates.clone()
        }
        _ => AwaitedPods::default(),
    }
}

/// Names the gates that are waited for, in a sentence.
fn awaiting(awaited: &AwaitedPods) -> String {
    let names = |pods: &BTreeSet<String>| {
        let names: Vec<&str> = pods.iter().map(String::as_str).collect();
        names.join(", ")
    };
    if awaited.pods.is_empty() {
        return "the gates have not been asked yet whether they have applied the change".into();
    }
    let message = format!(
        "waiting for gates that have not acknowledged the change: {}",
        names(&awaited.pods)
    );
    if awaited.elsewhere.is_empty() {
        return message;
    }
    let elsewhere = names(&awaited.elsewhere);
    format!(
        "{message}; of these, the key gate-url of Redis' Secret names or named another Redis to {elsewhere}: correct it \
         if it is wrong, let the rollout of the gates go on, or delete these pods, which are waited for until then"
    )
}
