//! One event for each transition of a key's life, and none when nothing changed.

use std::collections::BTreeSet;

use water_resources::api_key::{ApiName, Reissue};

use super::*;
use crate::conditions::Finding;
use crate::keys::record::Issued;

fn issued(hash: &str) -> Issued {
    Issued {
        revision: 0,
        hash: hash.repeat(32).parse().unwrap(),
        key_id: hash.repeat(6).parse().unwrap(),
        time: at(0),
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn report(outcome: Readiness) -> Report {
    let in_force = InForce {
        issued: issued("ab"),
        api: Some(ApiName {
            namespace: "team".into(),
            name: "water-data".into(),
        }),
        previous: None,
        next_rotation: None,
        secret: Some(("acme-apikey".into(), Some("7".into()))),
        last_used: None,
    };
    Report {
        findings: vec![
            Finding::holds(Aspect::Accepted, Reason::Admitted, ""),
            Finding::holds(Aspect::SecretReady, Reason::Written, ""),
            Finding::holds(Aspect::Synced, Reason::Published, ""),
        ],
        outcome,
        waiting_for: BTreeSet::new(),
        in_force: Some(in_force),
    }
}

fn in_force(reason: Reason) -> Report {
    report(Readiness::InForce(reason, String::new()))
}

/// The events of a life that goes through these reports.
fn events(reports: &[Report]) -> Vec<String> {
    let mut before = ApiKeyStatus::default();
    let mut told = Vec::new();
    for report in reports {
        let after = status(before.clone(), report, 1, at(0));
        let happened = transitions(&before, &after);
        told.extend(happened.into_iter().map(|transition| transition.reason));
        before = after;
    }
    told
}

#[test]
fn a_life_tells_each_transition_once() {
    let active = in_force(Reason::Active);
    let suspended = in_force(Reason::Suspended);
    let expired = report(Readiness::Stuck(Reason::Expired, String::new()));
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
    let expired = report(Readiness::Stuck(Reason::Expired, String::new()));
    let life = [expired.clone(), expired, in_force(Reason::Active)];
    assert_eq!(events(&life), ["KeyExpired", "KeyRenewed"]);
}

#[test]
fn a_hindrance_is_told_once_and_issues_nothing() {
    let mut conflict = report(Readiness::Stuck(Reason::SecretConflict, "taken".into()));
    conflict.in_force = None;
    assert_eq!(
        events(&[conflict.clone(), conflict, in_force(Reason::Active)]),
        ["SecretConflict", "KeyIssued"]
    );
}

#[test]
fn a_store_that_is_away_for_a_moment_is_no_event() {
    let away = report(Readiness::Underway(Reason::StoreUnavailable, String::new()));
    assert_eq!(
        events(&[in_force(Reason::Active), away, in_force(Reason::Active)]),
        ["KeyIssued"]
    );
}

#[test]
fn waiting_for_gates_on_the_way_neither_hides_nor_repeats_a_transition() {
    let (active, suspended) = (in_force(Reason::Active), in_force(Reason::Suspended));
    let waits = report(Readiness::Underway(Reason::AwaitingGates, String::new()));
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
    let after = |reissued: &str| {
        let before = status(ApiKeyStatus::default(), &in_force(Reason::Active), 1, at(0));
        let reissue = Reissue {
            key_id: reissued.into(),
            time: at(0),
        };
        let before = ApiKeyStatus {
            reissues: vec![reissue],
            ..before
        };
        let mut other = in_force(Reason::Active);
        let in_force = other.in_force.as_mut().unwrap();
        in_force.issued = issued("cd");
        in_force.previous = Some(issued("ab").retiring(at(60_000)));
        let after = status(before.clone(), &other, 1, at(0));
        let happened = transitions(&before, &after);
        assert_eq!(happened.len(), 1);
        (happened[0].reason.clone(), happened[0].note.clone())
    };
    let words = "key cdcdcdcdcdcd took the place of abababababab, which works until 1970-01-01T00:01:00.000Z";
    assert_eq!(after("ef"), ("KeyRotated".into(), words.into()));
    let words = format!("the Secret was gone or changed: {words}");
    assert_eq!(after("cdcdcdcdcdcd"), ("SecretReissued".into(), words));
}

#[test]
fn lost_admission_withdraws_and_another_publishes_again() {
    let refused = report(Readiness::Stuck(
        Reason::NamespaceNotAdmitted,
        String::new(),
    ));
    assert_eq!(
        events(&[in_force(Reason::Active), refused, in_force(Reason::Active)]),
        ["KeyIssued", "KeyWithdrawn", "KeyAdmitted"]
    );
}

#[test]
fn a_key_tells_when_its_validity_begins_and_when_that_is_put_off() {
    let (early, active) = (in_force(Reason::NotYetValid), in_force(Reason::Active));
    assert_eq!(
        events(&[early.clone(), active.clone(), active, early.clone()]),
        ["KeyIssued", "KeyActivated", "KeyPostponed"]
    );
    let suspended = in_force(Reason::Suspended);
    assert_eq!(events(&[early, suspended]), ["KeyIssued", "KeySuspended"]);
}

#[test]
fn the_end_of_a_refusal_is_told_once_it_is_accepted_and_not_when_the_store_is_away() {
    let active = || in_force(Reason::Active);
    let unknown = report(Readiness::Stuck(Reason::PlanUnknown, "Gold".into()));
    let waits = report(Readiness::Underway(Reason::AwaitingGates, String::new()));
    let away = report(Readiness::Underway(Reason::StoreUnavailable, String::new()));
    let deleting = report(Readiness::Underway(Reason::Deleting, String::new()));
    for accepted in [vec![active(), active()], vec![waits, active()]] {
        let life = [vec![active(), unknown.clone()], accepted].concat();
        assert_eq!(events(&life), ["KeyIssued", "PlanUnknown", "Recovered"]);
    }
    for other in [away, deleting] {
        let life = [active(), unknown.clone(), other];
        assert_eq!(events(&life), ["KeyIssued", "PlanUnknown"]);
    }
}

#[test]
fn a_key_that_another_replaces_does_not_recover() {
    let mut conflict = report(Readiness::Stuck(Reason::KeyConflict, String::new()));
    conflict.in_force = None;
    let mut waits = report(Readiness::Underway(Reason::AwaitingGates, String::new()));
    waits.in_force = None;
    let issued_key = status(ApiKeyStatus::default(), &in_force(Reason::Active), 1, at(0));
    let refused = status(issued_key, &conflict, 1, at(0));
    let told = |unrevealed: Vec<_>| {
        let before = ApiKeyStatus {
            unrevealed,
            ..refused.clone()
        };
        let after = status(before.clone(), &waits, 2, at(0));
        transitions(&before, &after).len()
    };
    assert_eq!(told(Vec::new()), 1);
    assert_eq!(told(vec![issued("cd").told()]), 0);
}

#[test]
fn only_a_status_that_names_other_keys_is_a_reason_to_look_again() {
    let active = status(ApiKeyStatus::default(), &in_force(Reason::Active), 1, at(0));
    assert!(names_other_keys(&ApiKeyStatus::default(), &active));
    let suspended = status(active.clone(), &in_force(Reason::Suspended), 2, at(1));
    assert!(!names_other_keys(&active, &suspended));
}

#[test]
fn an_edit_that_is_refused_in_other_words_is_told_of() {
    let unknown = |plan: &str| report(Readiness::Stuck(Reason::PlanUnknown, plan.into()));
    let told = |plan: &str, generation| {
        let before = status(ApiKeyStatus::default(), &unknown("Gold"), 1, at(0));
        let after = status(before.clone(), &unknown(plan), generation, at(1));
        transitions(&before, &after)
    };
    assert_eq!(
        told("Silver", 2),
        [Transition::warning("PlanUnknown", "Silver")]
    );
    assert_eq!(told("Gold", 2), []);
    // The same edit in other words: a time in them has changed.
    assert_eq!(told("Silver", 1), []);
}

#[test]
fn a_key_without_an_api_is_told_of_though_one_may_come_by_itself() {
    let mut ambiguous = report(Readiness::Underway(Reason::ApiAmbiguous, "name one".into()));
    ambiguous.in_force = None;
    let finding = Finding::lacks(Aspect::Accepted, Reason::ApiAmbiguous, "name one");
    ambiguous.findings = vec![finding];
    assert_eq!(
        events(&[ambiguous.clone(), ambiguous, in_force(Reason::Active)]),
        ["ApiAmbiguous", "KeyIssued"]
    );
}

#[test]
fn what_may_still_be_published_is_named_until_the_key_is_in_force() {
    let retiring = issued("cd").retiring(at(1));
    let before = ApiKeyStatus {
        previous: Some(retiring),
        unrevealed: vec![issued("ef").told()],
        ..ApiKeyStatus::default()
    };
    let after = |report: &Report| status(before.clone(), report, 1, at(2));
    let hindered = Report {
        in_force: None,
        ..in_force(Reason::Active)
    };
    let named = after(&hindered);
    assert!(named.previous.is_some());
    assert_eq!(named.unrevealed, [issued("ef").told()]);
    let named = after(&in_force(Reason::Active));
    assert_eq!((named.previous, named.unrevealed), (None, Vec::new()));
}

#[test]
fn a_deletion_keeps_what_it_says_nothing_about() {
    let before = status(ApiKeyStatus::default(), &in_force(Reason::Active), 1, at(0));
    let deleting = Report {
        findings: vec![Finding::lacks(Aspect::Synced, Reason::Deleting, "")],
        in_force: None,
        ..report(Readiness::Underway(Reason::Deleting, String::new()))
    };
    let after = status(before, &deleting, 2, at(1));
    assert_eq!(after.conditions.len(), 6);
    assert!(
        holds(&after.conditions, Aspect::Accepted) && !holds(&after.conditions, Aspect::Synced)
    );
}
