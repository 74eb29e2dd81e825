//! What a pass over an ApiKey found out: of a key in force, of one that is held up, of one refused.

use std::collections::BTreeSet;
use std::time::Duration;

use water_domain::Timestamp;

use super::admission::Refusal;
use super::publish::{Held, Hindrance, Published};
use super::record::{self, InvalidStatus};
use crate::conditions::{Aspect, Finding, Outcome, Reason};
use crate::crd::api_key::{IssuedAt, IssuedKey};
use crate::crd::{ApiKey, WaterDataApi};

/// When nothing happens: the grain of the last use.
pub const IDLE: Duration = Duration::from_secs(600);
/// Waiting for the gates is told in the status after this long; until then nobody has noticed.
pub const TOLD_AFTER: Duration = Duration::from_secs(1);
/// While a conflict or a store stands in the way: losers take over within 5 s.
const HINDERED: Duration = Duration::from_secs(3);
/// While somebody has to change what is declared.
const REFUSED: Duration = Duration::from_secs(60);

/// What a pass found out.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The WaterDataApi that the key is for.
    pub api: Option<IssuedAt>,
    /// The key that is declared, published or about to be.
    pub current: Option<IssuedKey>,
    /// Whether the owner can have the key: it is in the directory, and its Secret is written.
    pub revealed: bool,
    /// The Secret's name and version.
    pub secret: Option<(String, Option<String>)>,
    /// When the key was last used.
    pub last_used: Option<Timestamp>,
    /// The gates' pods that have not acknowledged what was written.
    pub waiting_for: Vec<String>,
    /// `Accepted`.
    pub accepted: Finding,
    /// `SecretReady`.
    pub secret_ready: Finding,
    /// `Synced`.
    pub synced: Finding,
    /// `Ready`, `Reconciling` and `Stalled`.
    pub outcome: Outcome,
    /// When to look again, if nothing happens before.
    pub again: Duration,
}

/// The report of a key that the directory holds as it is declared.
pub fn in_force(
    published: &Published,
    api: &WaterDataApi,
    place: &IssuedAt,
    last_used: Option<Timestamp>,
    now: Timestamp,
) -> Result<Report, InvalidStatus> {
    let Published {
        key,
        issued,
        secret,
    } = published;
    let record = record::record(key, issued)?;
    let plan = api
        .spec
        .plans
        .iter()
        .find(|plan| plan.name == record.plan)
        .ok_or(InvalidStatus)?;
    let secret_ready = match secret {
        Some((name, _)) => secret_holds(name),
        None => Finding::holds(
            Aspect::SecretReady,
            Reason::NotNeeded,
            "the key was brought along by its hash",
        ),
    };
    let boundaries = [record.not_before, record.expires].into_iter().flatten();
    let next = boundaries
        .map(|at| at.as_millis() - now.as_millis())
        .filter(|millis| *millis > 0)
        .min();
    let again = next
        .and_then(|millis| u64::try_from(millis).ok())
        .map(Duration::from_millis);
    Ok(Report {
        api: Some(place.clone()),
        revealed: true,
        secret: secret.clone(),
        last_used,
        accepted: Finding::holds(Aspect::Accepted, Reason::Admitted, admitted_by(place)),
        secret_ready,
        synced: holds_declared(),
        waiting_for: Vec::new(),
        outcome: match record::standing(&record, plan, now) {
            expired @ Outcome::Stuck(..) => expired,
            standing => unrotated(key, issued).unwrap_or(standing),
        },
        again: again.map_or(IDLE, |again| again.min(IDLE)),
        current: Some(issued.clone()),
    })
}

/// What `spec.rotation` asks for and this version does not do: accepting it silently would let an owner wait for a new
/// key that never comes.
fn unrotated(key: &ApiKey, issued: &IssuedKey) -> Option<Outcome> {
    let rotation = &key.spec.rotation;
    let (field, instead) = if rotation.period_seconds.is_some() {
        (
            "periodSeconds",
            "remove it, and delete the Secret when another key is due",
        )
    } else if rotation
        .revision
        .is_some_and(|revision| revision != issued.revision)
    {
        ("revision", "delete the Secret to have another key issued")
    } else {
        return None;
    };
    let message =
        format!("spec.rotation.{field} is not acted on by this version of the operator: {instead}");
    Some(Outcome::Stuck(Reason::NotSupported, message))
}

/// The report of a key that is admitted, and for which something stands in the way.
pub fn hindered(held: &Held, place: &IssuedAt) -> Report {
    let Held { key, hindrance } = held;
    let before = key.status.clone().unwrap_or_default();
    let waits = |aspect| Finding::lacks(aspect, Reason::Waiting, "an earlier step is not done");
    let written = before.secret_name.as_deref().map(secret_holds);
    let secret_ready = || {
        written
            .clone()
            .unwrap_or_else(|| waits(Aspect::SecretReady))
    };
    let (secret_ready, synced, outcome) = match hindrance {
        Hindrance::Directory(outcome) => (
            secret_ready(),
            says(Aspect::Synced, outcome),
            outcome.clone(),
        ),
        Hindrance::Secret(outcome) => (
            says(Aspect::SecretReady, outcome),
            waits(Aspect::Synced),
            outcome.clone(),
        ),
        Hindrance::Gates { pods, .. } => {
            let outcome = Outcome::Underway(Reason::AwaitingGates, awaiting(pods));
            (secret_ready(), holds_declared(), outcome)
        }
    };
    let is_rejected = matches!(&outcome, Outcome::Stuck(Reason::Rejected, _));
    Report {
        api: Some(place.clone()),
        current: before.current,
        revealed: false,
        secret: before
            .secret_name
            .map(|name| (name, before.secret_resource_version)),
        last_used: before.last_used_time,
        waiting_for: match hindrance {
            Hindrance::Gates { pods, .. } => named(pods),
            _ => Vec::new(),
        },
        accepted: Finding::holds(Aspect::Accepted, Reason::Admitted, admitted_by(place)),
        secret_ready,
        synced,
        outcome,
        again: if is_rejected { REFUSED } else { HINDERED },
    }
}

/// What an outcome that is no success says of an aspect.
fn says(aspect: Aspect, outcome: &Outcome) -> Finding {
    let (Outcome::InForce(reason, message)
    | Outcome::Underway(reason, message)
    | Outcome::Stuck(reason, message)) = outcome;
    Finding::lacks(aspect, *reason, message)
}

fn holds_declared() -> Finding {
    Finding::holds(
        Aspect::Synced,
        Reason::Published,
        "the key directory holds what is declared",
    )
}

/// Who is waited for, in a sentence.
pub fn awaiting(pods: &BTreeSet<String>) -> String {
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
pub fn named(pods: &BTreeSet<String>) -> Vec<String> {
    pods.iter().take(100).cloned().collect()
}

fn secret_holds(name: &str) -> Finding {
    Finding::holds(
        Aspect::SecretReady,
        Reason::Written,
        format!("the Secret {name} holds the key"),
    )
}

fn admitted_by(place: &IssuedAt) -> String {
    format!(
        "the WaterDataApi {}/{} admits the key",
        place.namespace, place.name
    )
}

/// The report of a key that is not admitted.
pub fn refused(key: &ApiKey, refusal: Refusal) -> Report {
    let before = key.status.clone().unwrap_or_default();
    let waits = |aspect| Finding::lacks(aspect, Reason::Waiting, "the key is not admitted");
    Report {
        api: before.api,
        current: before.current,
        revealed: false,
        secret: before
            .secret_name
            .map(|name| (name, before.secret_resource_version)),
        last_used: before.last_used_time,
        accepted: Finding::lacks(Aspect::Accepted, refusal.reason, refusal.message.clone()),
        secret_ready: waits(Aspect::SecretReady),
        synced: waits(Aspect::Synced),
        waiting_for: Vec::new(),
        outcome: Outcome::Stuck(refusal.reason, refusal.message),
        again: REFUSED,
    }
}
