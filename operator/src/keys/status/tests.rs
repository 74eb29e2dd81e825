//! One event for each transition of a key's life, and none when nothing changed.

use std::time::Duration;

use super::*;
use crate::conditions::Finding;
use crate::crd::api_key::{IssuedAt, IssuedKey};
use crate::sample;

fn issued(hash: &str) -> IssuedKey {
    IssuedKey {
        revision: 0,
        hash: hash.repeat(32),
        key_id: hash.repeat(6),
        issued_time: Timestamp::from_millis(0).unwrap(),
    }
}

fn report(outcome: Outcome) -> Report {
    Report {
        waiting_for: Vec::new(),
        api: Some(IssuedAt {
            namespace: "team".into(),
            name: "water-data".into(),
        }),
        current: Some(issued("ab")),
        revealed: true,
        secret: Some(("acme-apikey".into(), Some("7".into()))),
        last_used: None,
        accepted: Finding::holds(Aspect::Accepted, Reason::Admitted, ""),
        secret_ready: Finding::holds(Aspect::SecretReady, Reason::Written, ""),
        synced: Finding::holds(Aspect::Synced, Reason::Published, ""),
        outcome,
        again: Duration::ZERO,
    }
}

fn in_force(reason: Reason) -> Report {
    report(Outcome::InForce(reason, String::new()))
}

/// The events of a life that goes through these reports.
fn events(reports: &[Report]) -> Vec<String> {
    let mut key = sample::key("acme", "team");
    let mut told = Vec::new();
    for report in reports {
        let before = key.status.clone().unwrap_or_default();
        let after = status(&key, report, Timestamp::from_millis(0).unwrap());
        told.extend(
            transitions(&before, &after)
                .into_iter()
                .map(|happening| happening.reason),
        );
        key.status = Some(after);
    }
    told
}

#[test]
fn a_life_tells_each_transition_once() {
    let active = in_force(Reason::Active);
    let suspended = in_force(Reason::Suspended);
    let expired = report(Outcome::Stuck(Reason::Expired, String::new()));
    let life = [
        active.clone(),
        active.clone(),
        suspended.clone(),
        suspended,
        active,
        expired,
    ];
    assert_eq!(
        events(&life),
        ["KeyIssued", "KeySuspended", "KeyResumed", "KeyExpired"]
    );
}

#[test]
fn a_key_that_begins_suspended_tells_both() {
    assert_eq!(
        events(&[in_force(Reason::Suspended)]),
        ["KeyIssued", "KeySuspended"]
    );
}

#[test]
fn a_key_that_begins_expired_is_never_told_to_be_usable_before_it_is_renewed() {
    let expired = report(Outcome::Stuck(Reason::Expired, String::new()));
    let life = [expired.clone(), expired, in_force(Reason::Active)];
    assert_eq!(events(&life), ["KeyExpired", "KeyRenewed"]);
}

#[test]
fn a_hindrance_is_told_once_and_issues_nothing() {
    let mut conflict = report(Outcome::Stuck(Reason::SecretConflict, "taken".into()));
    conflict.revealed = false;
    conflict.secret = None;
    assert_eq!(
        events(&[conflict.clone(), conflict, in_force(Reason::Active)]),
        ["SecretConflict", "KeyIssued"]
    );
}

#[test]
fn a_store_that_is_away_for_a_moment_is_no_event() {
    let away = report(Outcome::Underway(Reason::StoreUnavailable, String::new()));
    assert_eq!(
        events(&[in_force(Reason::Active), away, in_force(Reason::Active)]),
        ["KeyIssued"]
    );
}

#[test]
fn waiting_for_gates_on_the_way_neither_hides_nor_repeats_a_transition() {
    let (active, suspended) = (in_force(Reason::Active), in_force(Reason::Suspended));
    let waits = report(Outcome::Underway(Reason::AwaitingGates, String::new()));
    let life = [
        active.clone(),
        waits.clone(),
        suspended.clone(),
        waits.clone(),
        suspended,
        waits,
        active,
    ];
    assert_eq!(events(&life), ["KeyIssued", "KeySuspended", "KeyResumed"]);
}

#[test]
fn another_key_is_a_rotation_or_a_reissue() {
    let mut other = in_force(Reason::Active);
    other.current = Some(issued("cd"));
    let mut brought = [in_force(Reason::Active), other.clone()];
    brought.iter_mut().for_each(|report| report.secret = None);
    assert_eq!(events(&brought), ["KeyIssued", "KeyRotated"]);
    assert_eq!(
        events(&[in_force(Reason::Active), other]),
        ["KeyIssued", "SecretReissued"]
    );
}

#[test]
fn lost_admission_withdraws() {
    let refused = report(Outcome::Stuck(Reason::NamespaceNotAdmitted, String::new()));
    assert_eq!(
        events(&[in_force(Reason::Active), refused]),
        ["KeyIssued", "KeyWithdrawn"]
    );
}

#[test]
fn what_may_still_be_published_is_named_until_the_key_is_in_force() {
    let mut key = sample::key("acme", "team");
    let retiring = crate::crd::api_key::RetiringKey {
        revision: 0,
        hash: "cd".repeat(32),
        key_id: "cd".repeat(6),
        issued_time: Timestamp::from_millis(0).unwrap(),
        retire_time: Timestamp::from_millis(1).unwrap(),
    };
    key.status = Some(ApiKeyStatus {
        previous: Some(retiring),
        unrevealed: vec![issued("ef")],
        ..ApiKeyStatus::default()
    });
    let after = |report: &Report| status(&key, report, Timestamp::from_millis(2).unwrap());
    let hindered = Report {
        revealed: false,
        ..in_force(Reason::Active)
    };
    let named = after(&hindered);
    assert!(named.previous.is_some());
    assert_eq!(named.unrevealed, [issued("ef")]);
    let named = after(&in_force(Reason::Active));
    assert_eq!((named.previous, named.unrevealed), (None, Vec::new()));
}
