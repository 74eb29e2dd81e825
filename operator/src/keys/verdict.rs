//! What a verdict says in the status: findings and their words.

use std::collections::BTreeSet;
use std::time::Duration;

use water_domain::{KeyHash, Timestamp};

use super::error::{KeyError, outcome};
use super::gather::Scene;
use super::record::Issued;
use super::standing::{standing, unrotated};
use super::step::{Hindrance, Refusal, Verdict};
use super::subject::REINSTATE;
use crate::conditions::{Aspect, Finding, Outcome, Reason};
use crate::crd::api_key::IssuedAt;
use crate::directories::waits::Standing;

/// Waiting for the gates is told in the status after this long; until then nobody has noticed.
pub const TOLD_AFTER: Duration = Duration::from_secs(1);

/// What a pass found out.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The WaterDataApi that the key is for.
    pub api: Option<IssuedAt>,
    /// The key that is in force at every gate, and that its owner can have.
    pub in_force: Option<Issued>,
    /// The Secret's name and version.
    pub secret: Option<(String, Option<String>)>,
    /// When the key was last used.
    pub last_used: Option<Timestamp>,
    /// The gates' pods that have not acknowledged what was written.
    pub waiting_for: Vec<String>,
    /// `Accepted`, `SecretReady` and `Synced`, as far as anything is found out about them.
    pub findings: Vec<Finding>,
    /// `Ready`, `Reconciling` and `Stalled`.
    pub outcome: Outcome,
}

/// What a failed step leaves of the verdict; an error that nobody can do anything about is returned.
pub fn of_failure(scene: &mut Scene, error: KeyError) -> Result<Verdict<KeyHash>, KeyError> {
    match error {
        KeyError::Directory(error) => {
            scene.trouble = Some(outcome(&error));
            Ok(Verdict::Held(Hindrance::Directory))
        }
        KeyError::Rejected(message) => Ok(Verdict::Refused(Refusal::SecretRejected(message))),
        error => Err(error),
    }
}

/// Whether there is something to tell: a wait for the gates that has only begun is no news.
pub fn is_news(scene: &Scene, verdict: &Verdict<KeyHash>) -> bool {
    let standing = scene.reading.as_ref().map(|reading| &reading.standing);
    match (verdict, standing) {
        (Verdict::Underway | Verdict::Released, _) => false,
        (Verdict::Awaiting, Some(Standing::Awaiting { since, .. })) => {
            since.elapsed() >= TOLD_AFTER
        }
        _ => true,
    }
}

/// When a key's standing changes by itself, if it is in force.
pub fn next_boundary(scene: &Scene) -> Option<Duration> {
    let spec = scene.subject.spec()?;
    let now = scene.reading.as_ref()?.now.as_millis();
    let boundaries = [spec.not_before, spec.expiration_time]
        .into_iter()
        .flatten();
    let left = boundaries
        .map(|at| at.as_millis() - now)
        .filter(|left| *left > 0);
    left.min()?.try_into().ok().map(Duration::from_millis)
}

/// The report of an ApiKey that is being deleted: what it waits for.
pub fn deleting(scene: &Scene, verdict: &Verdict<KeyHash>) -> Report {
    let pods = match verdict {
        Verdict::Held(Hindrance::GatesRemain) => scene.remaining.clone(),
        Verdict::Awaiting => awaited(scene),
        _ => BTreeSet::new(),
    };
    let message = match (verdict, &scene.trouble) {
        (Verdict::Held(Hindrance::Directory), Some(trouble)) => {
            format!(
                "{}: the key is revoked as soon as that works",
                trouble.message()
            )
        }
        _ => awaiting(&pods),
    };
    let synced = Finding::lacks(Aspect::Synced, Reason::Deleting, &message);
    Report {
        waiting_for: named(&pods),
        findings: vec![synced],
        ..unchanged(scene, Outcome::Underway(Reason::Deleting, message))
    }
}

/// The report of an ApiKey that lives.
pub fn living(scene: &Scene, verdict: &Verdict<KeyHash>) -> Report {
    let pods = awaited(scene);
    let report = match verdict {
        Verdict::InForce(hash) => in_force(scene, hash),
        Verdict::Refused(refusal) => refused(scene, refusal),
        Verdict::Held(Hindrance::Directory) => {
            let outcome = scene.trouble.clone().unwrap_or_else(|| {
                Outcome::Underway(
                    Reason::StoreUnavailable,
                    "the key directory cannot be read".into(),
                )
            });
            let synced = lacks(Aspect::Synced, &outcome);
            hindered(scene, secret_ready(scene), synced, outcome)
        }
        Verdict::Held(Hindrance::Terminating) => {
            let message = "the namespace is being deleted: no key is issued in it";
            let outcome = Outcome::Underway(Reason::Waiting, message.into());
            hindered(
                scene,
                lacks(Aspect::SecretReady, &outcome),
                holds_declared(),
                outcome,
            )
        }
        Verdict::Awaiting
        | Verdict::Held(Hindrance::GatesRemain)
        | Verdict::Underway
        | Verdict::Released => {
            let outcome = Outcome::Underway(Reason::AwaitingGates, awaiting(&pods));
            hindered(scene, secret_ready(scene), holds_declared(), outcome)
        }
    };
    Report {
        waiting_for: named(&pods),
        ..report
    }
}

fn in_force(scene: &Scene, hash: &KeyHash) -> Report {
    let before = &scene.subject.status;
    let issued = scene.issued.get(hash).cloned();
    let reading = scene.reading.as_ref();
    let record = reading.and_then(|reading| reading.records.get(hash)?.clone());
    let plan = record.as_ref().and_then(|record| {
        let api = scene.api.as_ref()?;
        api.spec.plans.iter().find(|plan| plan.name == record.plan)
    });
    let (Some(issued), Some(record), Some(plan), Some(reading)) = (issued, record, plan, reading)
    else {
        // What is in force was read, its plan too.
        return unchanged(
            scene,
            Outcome::Underway(Reason::Waiting, "to be read again".into()),
        );
    };
    let standing = standing(&record, plan, reading.now);
    let rotation = scene.subject.spec().map(|spec| &spec.rotation);
    let unrotated = rotation.and_then(|rotation| unrotated(rotation, &issued));
    let secret = scene.subject.secret_name();
    let secret_ready = match &secret {
        Some(name) => secret_holds(name),
        None => Finding::holds(
            Aspect::SecretReady,
            Reason::NotNeeded,
            "the key was brought along by its hash",
        ),
    };
    Report {
        api: scene.place.clone(),
        last_used: before
            .last_used_time
            .max(reading.open.last_use(&issued.key_id)),
        in_force: Some(issued),
        secret: secret.map(|name| (name, scene.secret_version.clone())),
        waiting_for: Vec::new(),
        findings: vec![accepted(scene), secret_ready, holds_declared()],
        outcome: match standing {
            expired @ Outcome::Stuck(..) => expired,
            standing => unrotated.unwrap_or(standing),
        },
    }
}

fn refused(scene: &Scene, refusal: &Refusal) -> Report {
    let brought = scene.subject.brought;
    let stuck = |reason, message: String| Outcome::Stuck(reason, message);
    let outcome = match refusal {
        Refusal::NotAdmitted => return not_admitted(scene),
        Refusal::Undecodable => {
            let error = scene.subject.key.as_ref().err();
            let error = error.map_or("", String::as_str);
            let message = format!("the ApiKey cannot be read: {error}");
            return unchanged(scene, stuck(Reason::Undecodable, message));
        }
        Refusal::SecretConflict => {
            let name = scene.subject.secret_name().unwrap_or_default();
            let message = format!(
                "the Secret {name} exists and is not this ApiKey's: delete it, or create another ApiKey with another \
                 spec.material.generated.secretName"
            );
            let outcome = stuck(Reason::SecretConflict, message);
            let secret = lacks(Aspect::SecretReady, &outcome);
            return hindered(scene, secret, waits(Aspect::Synced), outcome);
        }
        Refusal::SecretRejected(message) => {
            let name = scene.subject.secret_name().unwrap_or_default();
            let message = format!("the API server does not accept the Secret {name}: {message}");
            let outcome = stuck(Reason::Rejected, message);
            let secret = lacks(Aspect::SecretReady, &outcome);
            return hindered(scene, secret, waits(Aspect::Synced), outcome);
        }
        Refusal::Revoked(at) => stuck(
            Reason::RevokedInStore,
            match brought {
                Some(hash) => format!(
                    "spec.material.hash.sha256 was revoked before: bring another key, or annotate the ApiKey with \
                     {REINSTATE}: {}@{at} to accept it again",
                    hash.key_id()
                ),
                None => "the key in the Secret was revoked before: delete the Secret to have another key issued".into(),
            },
        ),
        Refusal::OwnerRevoked => stuck(
            Reason::RevokedInStore,
            "this ApiKey was deleted before and came back: create it again under another name".into(),
        ),
        Refusal::Taken => stuck(
            Reason::KeyConflict,
            "spec.material.hash.sha256 is another ApiKey's: bring another key, or delete the other ApiKey".into(),
        ),
    };
    let synced = lacks(Aspect::Synced, &outcome);
    hindered(scene, secret_ready(scene), synced, outcome)
}

/// A missing WaterDataApi may come by itself; anything else somebody has to change.
fn not_admitted(scene: &Scene) -> Report {
    let (reason, message) = match &scene.refusal {
        Some(refusal) => (refusal.reason, refusal.message.clone()),
        None => (
            Reason::ApiAmbiguous,
            "no WaterDataApi admits the key".into(),
        ),
    };
    let outcome = match reason {
        Reason::ApiAmbiguous | Reason::ApiNotFound => Outcome::Underway(reason, message),
        _ => Outcome::Stuck(reason, message),
    };
    let waits = |aspect| Finding::lacks(aspect, Reason::Waiting, "the key is not admitted");
    Report {
        findings: vec![
            lacks(Aspect::Accepted, &outcome),
            waits(Aspect::SecretReady),
            waits(Aspect::Synced),
        ],
        ..unchanged(scene, outcome)
    }
}

/// The report of a key that is admitted, and for which something stands in the way.
fn hindered(scene: &Scene, secret_ready: Finding, synced: Finding, outcome: Outcome) -> Report {
    Report {
        findings: vec![accepted(scene), secret_ready, synced],
        ..unchanged(scene, outcome)
    }
}

/// Nothing but an outcome; the rest stays as the status has it.
fn unchanged(scene: &Scene, outcome: Outcome) -> Report {
    let before = &scene.subject.status;
    let name = before.secret_name.clone();
    Report {
        api: before.api.clone(),
        in_force: None,
        secret: name.map(|name| (name, before.secret_resource_version.clone())),
        last_used: before.last_used_time,
        waiting_for: Vec::new(),
        findings: Vec::new(),
        outcome,
    }
}

fn accepted(scene: &Scene) -> Finding {
    let place = scene.place.as_ref();
    let (namespace, name) = place.map_or(("", ""), |place| {
        (place.namespace.as_str(), place.name.as_str())
    });
    let message = format!("the WaterDataApi {namespace}/{name} admits the key");
    Finding::holds(Aspect::Accepted, Reason::Admitted, message)
}

fn secret_ready(scene: &Scene) -> Finding {
    let written = scene.subject.status.secret_name.as_deref();
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

/// What an outcome that is no success says of an aspect.
fn lacks(aspect: Aspect, outcome: &Outcome) -> Finding {
    Finding::lacks(aspect, outcome.reason(), outcome.message())
}

fn awaited(scene: &Scene) -> BTreeSet<String> {
    match scene.reading.as_ref().map(|reading| &reading.standing) {
        Some(Standing::Awaiting { pods, since }) if since.elapsed() >= TOLD_AFTER => pods.clone(),
        _ => BTreeSet::new(),
    }
}

/// Who is waited for, in a sentence.
fn awaiting(pods: &BTreeSet<String>) -> String {
    let names: Vec<&str> = pods.iter().map(String::as_str).collect();
    match &names[..] {
        [] => "the gates have not been asked yet whether they have applied the change".into(),
        names => format!(
            "waiting for gates that have not acknowledged the change: {}",
            names.join(", ")
        ),
    }
}

/// As many names as a status has room for.
fn named(pods: &BTreeSet<String>) -> Vec<String> {
    pods.iter().take(100).cloned().collect()
}
