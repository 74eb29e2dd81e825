//! Tests of the events: one for each transition of a key's life, and none when nothing changed.

use std::collections::BTreeSet;

use water_operator_core::key::ledger::Ledger;
use water_resources::api_key::{ApiName, IssuedKey, Reissue};

use super::*;
use crate::conditions::Finding;
use crate::keys::record::Issuance;

fn issued(hash: &str) -> Issuance {
    Issuance {
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
        plan: "Enterprise".parse().unwrap(),
        ledger: Ledger::confirm(issued("ab").hash, None),
        issued: ["ab", "cd"]
            .map(issued)
            .map(|issued| (issued.hash, issued))
            .into(),
        api: Some(ApiName {
            namespace: "team".into(),
            name: "water-data".into(),
        }),
        next_rotation: None,
        secret: Some(("acme-apikey".into(), Some("7".into()))),
        last_used: None,
    };
    Report {
        findings: vec![
            Finding::holds(ConditionType::Accepted, Reason::Admitted, ""),
            Finding::holds(ConditionType::SecretReady, Reason::Written, ""),
            Finding::holds(ConditionType::Synced, Reason::Published, ""),
        ],
        outcome: Some(outcome),
        waiting_for: BTreeSet::new(),
        in_force: Some(in_force),
    }
}

fn in_force(reason: Reason) -> Report {
    report(Readiness::InForce(reason, String::new()))
}

fn stuck(reason: Reason) -> Report {
    report(Readiness::Stuck(reason, String::new()))
}

fn underway(reason: Reason) -> Report {
    report(Readiness::Underway(reason, String::new()))
}

/// Report of an ApiKey of which no key is in force.
fn without(report: Report) -> Report {
    Report {
        in_force: None,
        ..report
    }
}

/// The events of a life that goes through these reports.
fn events(reports: Vec<Report>) -> Vec<String> {
    let mut before = ApiKeyStatus::default();
    let mut told = Vec::new();
    for report in reports {
        let after = status(before.clone(), &report, 1, at(0));
        let happened = transitions(&before, &after);
        told.extend(happened.into_iter().map(|transition| transition.reason));
        before = after;
    }
    told
}

#[test]
#[rustfmt::skip]
fn a_life_tells_each_transition_once() {
    use Reason::{
        AwaitingGates, Deleting, Expired, NamespaceNotAdmitted, NotYetValid, PlanUnknown, SecretConflict,
        StoreUnavailable, Suspended,
    };
    let active = || in_force(Reason::Active);
    let (suspended, early) = (|| in_force(Suspended), || in_force(NotYetValid));
    let (expired, unknown) = (|| stuck(Expired), || stuck(PlanUnknown));
    let (waits, away) = (|| underway(AwaitingGates), || underway(StoreUnavailable));
    let kept = || without(Report { outcome: None, ..away() });
    let unknown_standing = || without(report(Readiness::Unknown(StoreUnavailable, String::new())));
    let conflict = || without(stuck(SecretConflict));
    let ambiguous = || {
        let finding = Finding::lacks(ConditionType::Accepted, Reason::ApiAmbiguous, "name one");
        Report { findings: vec![finding], ..without(underway(Reason::ApiAmbiguous)) }
    };
    let lives = [
        (
            "suspended, resumed, expired",
            vec![active(), active(), suspended(), suspended(), active(), expired()],
            "KeyIssued KeySuspended KeyResumed KeyExpired",
        ),
        ("it begins suspended", vec![suspended()], "KeyIssued KeySuspended"),
        ("expired, it is not told to be usable before", vec![expired(), expired(), active()], "KeyExpired KeyRenewed"),
        ("a hindrance issues nothing", vec![conflict(), conflict(), active()], "SecretConflict KeyIssued"),
        ("a store that is away for a moment", vec![active(), away(), active()], "KeyIssued"),
        ("and for longer than gates serve without it", vec![active(), kept(), unknown_standing(), active()], "KeyIssued"),
        (
            "a wait for gates neither hides nor repeats anything",
            vec![active(), waits(), suspended(), waits(), suspended(), waits(), active()],
            "KeyIssued KeySuspended KeyResumed",
        ),
        ("lost admission", vec![active(), stuck(NamespaceNotAdmitted), active()], "KeyIssued KeyWithdrawn KeyAdmitted"),
        ("its validity begins and is put off", vec![early(), active(), active(), early()], "KeyIssued KeyActivated KeyPostponed"),
        ("it is suspended before that", vec![early(), suspended()], "KeyIssued KeySuspended"),
        ("a refusal ends", vec![active(), unknown(), active(), active()], "KeyIssued PlanUnknown Recovered"),
        ("once it is accepted", vec![active(), unknown(), waits(), active()], "KeyIssued PlanUnknown Recovered"),
        ("and not when the store is away", vec![active(), unknown(), away()], "KeyIssued PlanUnknown"),
        ("or the key goes", vec![active(), unknown(), underway(Deleting)], "KeyIssued PlanUnknown"),
        ("no API, though one may come by itself", vec![ambiguous(), ambiguous(), active()], "ApiAmbiguous KeyIssued"),
    ];
    for (what, life, told) in lives {
        assert_eq!(events(life).join(" "), told, "{what}");
    }
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
        let retiring = Some((issued("ab").hash, at(60_000)));
        in_force.ledger = Ledger::confirm(issued("cd").hash, retiring);
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
fn another_plan_is_told_once_it_is_in_force() {
    let with = |plan: &str, reason| {
        let mut report = in_force(reason);
        report.in_force.as_mut().unwrap().plan = plan.parse().unwrap();
        report
    };
    let first = status(
        ApiKeyStatus::default(),
        &with("Free", Reason::Active),
        1,
        at(0),
    );
    let waits = status(
        first.clone(),
        &without(underway(Reason::AwaitingGates)),
        2,
        at(1),
    );
    assert_eq!(transitions(&first, &waits), []);
    let after = status(
        waits.clone(),
        &with("Enterprise", Reason::Suspended),
        2,
        at(2),
    );
    let words = "key abababababab has the plan Enterprise instead of Free";
    let told = transitions(&waits, &after);
    assert_eq!(told[0], Transition::normal("PlanChanged", words));
    assert_eq!(told[1].reason, "KeySuspended");
}

#[test]
fn a_key_that_another_replaces_does_not_recover() {
    let conflict = without(stuck(Reason::KeyConflict));
    let waits = without(underway(Reason::AwaitingGates));
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
fn what_may_still_be_published_is_named_until_the_key_is_in_force() {
    let retiring = issued("cd").retiring(at(1));
    let before = ApiKeyStatus {
        previous: Some(retiring),
        unrevealed: vec![issued("ef").told()],
        ..ApiKeyStatus::default()
    };
    let after = |report: &Report| status(before.clone(), report, 1, at(2));
    let named = after(&without(in_force(Reason::Active)));
    assert!(named.previous.is_some());
    assert_eq!(named.unrevealed, [issued("ef").told()]);
    let named = after(&in_force(Reason::Active));
    assert_eq!((named.previous, named.unrevealed), (None, Vec::new()));
}

#[test]
fn what_somebody_else_wrote_of_the_key_in_force_is_put_back() {
    let told = status(ApiKeyStatus::default(), &in_force(Reason::Active), 1, at(0));
    let planted = ApiKeyStatus {
        current: Some(IssuedKey {
            revision: 4_000_000_000,
            key_id: "planted00000".into(),
            issued_time: at(9000),
            ..issued("ab").told()
        }),
        ..told.clone()
    };
    assert_ne!(planted, told);
    let after = status(planted, &in_force(Reason::Active), 1, at(1));
    assert_eq!(after, told);
}

#[test]
fn a_deletion_keeps_what_it_says_nothing_about() {
    let before = status(ApiKeyStatus::default(), &in_force(Reason::Active), 1, at(0));
    let deleting = Report {
        findings: vec![Finding::lacks(ConditionType::Synced, Reason::Deleting, "")],
        ..without(underway(Reason::Deleting))
    };
    let after = status(before, &deleting, 2, at(1));
    assert_eq!(after.conditions.len(), 6);
    assert!(
        holds(&after.conditions, ConditionType::Accepted)
            && !holds(&after.conditions, ConditionType::Synced)
    );
}

fn shown(status: &ApiKeyStatus, aspect: ConditionType) -> String {
    let condition = find(&status.conditions, aspect);
    condition.map_or_else(String::new, |condition| {
        format!("{:?}/{}", condition.status, condition.reason)
    })
}

#[test]
fn a_pass_that_is_given_up_leaves_what_was_reported_of_this_generation_beside_the_cause() {
    let refused = Readiness::Underway(Reason::ApiServerError, "no rights".into());
    for (report, ready, stalled) in [
        (in_force(Reason::Active), "True/Active", "False/Active"),
        (stuck(Reason::Expired), "False/Expired", "True/Expired"),
    ] {
        let before = status(ApiKeyStatus::default(), &report, 1, at(0));
        let after = interrupted(before.clone(), &refused, 1, at(1));
        assert_eq!(
            shown(&after, ConditionType::Synced),
            "Unknown/ApiServerError"
        );
        assert_eq!(shown(&after, ConditionType::Ready), ready);
        assert_eq!(shown(&after, ConditionType::Stalled), stalled);
        assert_eq!(transitions(&before, &after), [], "the log tells of it");
        assert_eq!(interrupted(after.clone(), &refused, 1, at(2)), after);
    }
}

#[test]
fn a_change_whose_pass_is_given_up_is_not_ready_and_nobody_knows_what_is_published() {
    let refused = Readiness::Underway(Reason::ApiServerError, "no rights".into());
    let in_force = status(ApiKeyStatus::default(), &in_force(Reason::Active), 1, at(0));
    let waiting = status(
        ApiKeyStatus::default(),
        &underway(Reason::AwaitingGates),
        2,
        at(0),
    );
    for before in [ApiKeyStatus::default(), in_force, waiting] {
        let after = interrupted(before, &refused, 2, at(1));
        assert_eq!(after.observed_generation, Some(2));
        for (aspect, wanted) in [
            (ConditionType::Ready, "False/ApiServerError"),
            (ConditionType::Reconciling, "True/ApiServerError"),
            (ConditionType::Stalled, "False/ApiServerError"),
            // A new leader that read "True" would take the change for acknowledged.
            (ConditionType::Synced, "Unknown/ApiServerError"),
        ] {
            assert_eq!(shown(&after, aspect), wanted);
        }
        assert_eq!(interrupted(after.clone(), &refused, 2, at(2)), after);
    }
}

#[test]
fn what_is_wrong_beside_the_key_is_a_condition_while_it_is_and_an_event_when_it_begins() {
    let mut degraded = in_force(Reason::Active);
    let why = Finding::holds(ConditionType::Degraded, Reason::ApiServerError, "no labels");
    degraded.findings.push(why);
    let well = status(ApiKeyStatus::default(), &in_force(Reason::Active), 1, at(0));
    let ill = status(well.clone(), &degraded, 1, at(1));
    assert_eq!(shown(&ill, ConditionType::Degraded), "True/ApiServerError");
    assert_eq!(shown(&ill, ConditionType::Ready), "True/Active");
    let happened = [Transition::warning("ApiServerError", "no labels")];
    assert_eq!(transitions(&well, &ill), happened);
    let later = status(ill.clone(), &degraded, 2, at(2));
    assert_eq!(transitions(&ill, &later), []);
    let again = status(later, &in_force(Reason::Active), 2, at(3));
    assert_eq!(shown(&again, ConditionType::Degraded), "");
}
