//! The conditions and events of an installation's life.

use serde_json::json;

use super::*;
use crate::events::Transition;
use crate::sample;

fn part(name: &str, ready: i32) -> ComponentStatus {
    ComponentStatus {
        name: name.into(),
        desired: 2,
        ready,
        updated: 2,
        image: "image".into(),
    }
}

fn report(outcome: Readiness, ready: i32) -> Report {
    Report {
        components: vec![part("gate", ready), part("departements", 2)],
        rolled_out: matches!(outcome, Readiness::InForce(Reason::Complete, _)),
        keys: ApiKeyCounts::default(),
        migrations: Finding::holds(ConditionType::MigrationsComplete, Reason::Complete, ""),
        directory: Finding::holds(ConditionType::DirectorySynced, Reason::Published, "").into(),
        data: data(Ok(RowCounts {
            stress: 0,
            risk: 101,
        })),
        exposure: Finding::holds(ConditionType::ExposureReady, Reason::NotConfigured, ""),
        sign_in: None,
        upkeep: Vec::new(),
        strays: Vec::new(),
        outcome,
    }
}

fn complete() -> Report {
    report(Readiness::InForce(Reason::Complete, String::new()), 2)
}

fn failed() -> Report {
    report(
        Readiness::Stuck(Reason::RolloutFailed, "no progress".into()),
        1,
    )
}

fn made(report: &Report) -> WaterDataApiStatus {
    status(
        &sample::api("water-data", "water"),
        report,
        Timestamp::from_millis(0).unwrap(),
    )
}

/// Conditions, each as `<status>/<reason>: <message>`.
fn shows(status: &WaterDataApiStatus, wanted: &[(ConditionType, &str)]) {
    for (aspect, wanted) in wanted {
        let found = find(&status.conditions, *aspect).unwrap();
        let shown = format!("{:?}/{}: {}", found.status, found.reason, found.message);
        assert_eq!(shown, *wanted);
    }
}

/// The reasons of the events between two reports.
fn told(before: &WaterDataApiStatus, after: &WaterDataApiStatus) -> Vec<String> {
    let happened = transitions(before, after, &[]).into_iter();
    happened.map(|transition| transition.reason).collect()
}

#[test]
fn each_new_advice_is_a_warning_once_whatever_else_is_said() {
    let advice = [
        (Reason::ReplicasUnguarded, "set it"),
        (Reason::PlansDiffer, "a and b"),
    ];
    let advice = advice.map(|(reason, sentence)| Advice {
        reason,
        sentence: sentence.into(),
    });
    let said = |advice: &[Advice]| {
        let mut report = complete();
        let sentences: Vec<&str> = advice.iter().map(|said| &*said.sentence).collect();
        let message = sentences.join("; ");
        report.directory =
            Finding::holds(ConditionType::DirectorySynced, advice[0].reason, message).into();
        made(&report)
    };
    let (one, both) = (said(&advice[..1]), said(&advice));
    assert_eq!(
        transitions(&made(&complete()), &one, &advice[..1]),
        [Transition::warning("ReplicasUnguarded", "set it")]
    );
    assert_eq!(
        transitions(&one, &both, &advice),
        [Transition::warning("PlansDiffer", "a and b")]
    );
    assert_eq!(transitions(&both, &both, &advice), []);
    // No room was left for it in the message.
    assert_eq!(transitions(&one, &one, &advice), []);
}

#[test]
fn a_rollout_that_is_paused_has_no_target_until_it_goes_on() {
    let mut api = sample::api("water-data", "water");
    api.spec.paused = true;
    let now = Timestamp::from_millis(0).unwrap();
    let stopped = Readiness::InForce(Reason::Paused, String::new());
    let paused = status(&api, &report(stopped, 2), now);
    assert_eq!(paused.target_version, None);
    let started = |status: &WaterDataApiStatus| {
        told(status, &made(&failed())).contains(&"RolloutStarted".into())
    };
    assert!(!told(&WaterDataApiStatus::default(), &paused).contains(&"RolloutStarted".into()));
    assert!(started(&paused));
}

#[test]
fn a_gate_that_does_not_follow_the_directory_is_warned_of_once() {
    let mut stray = complete();
    stray.strays = vec!["gate-1".into()];
    let (before, after) = (made(&complete()), made(&stray));
    let warned = |before, after| {
        let happened = transitions(before, after, &stray.warnings()).into_iter();
        happened
            .map(|transition| transition.reason)
            .collect::<Vec<_>>()
    };
    assert_eq!(warned(&before, &after), ["GateWithoutLease"]);
    assert!(warned(&after, &after).is_empty());
    let degraded = find(&after.conditions, ConditionType::Degraded).unwrap();
    assert!(degraded.message.contains("gate-1"), "{degraded:?}");
    assert!(holds(&after.conditions, ConditionType::Ready));
}

#[test]
fn each_problem_is_seen_beside_the_others_the_worst_first() {
    let problem = |reason, sentence: &str| Advice {
        reason,
        sentence: sentence.into(),
    };
    let mut ill = report(Readiness::InForce(Reason::Complete, String::new()), 1);
    ill.upkeep = vec![
        problem(Reason::StoreDenied, "last uses"),
        problem(Reason::SweepHeld, "1000 ApiKeys"),
    ];
    let (before, first) = (made(&complete()), made(&ill));
    ill.strays = vec!["gate-1".into()];
    let after = made(&ill);
    let degraded = find(&after.conditions, ConditionType::Degraded).unwrap();
    assert_eq!(degraded.reason, "SweepHeld");
    let words = ["1000 ApiKeys", "gate-1", "last uses", "gate 1 of 2"];
    let places = words.map(|word| degraded.message.find(word));
    assert!(places.iter().all(Option::is_some), "{degraded:?}");
    assert!(places.is_sorted(), "{degraded:?}");
    let warned = |before, after| {
        let happened = transitions(before, after, &ill.warnings()).into_iter();
        happened
            .map(|transition| transition.reason)
            .collect::<Vec<_>>()
    };
    assert_eq!(warned(&before, &after), ["SweepHeld", "GateWithoutLease"]);
    assert_eq!(warned(&first, &after), ["GateWithoutLease"]);
}

#[test]
fn a_problem_whose_names_or_numbers_change_is_warned_of_once_however_many_there_are() {
    let with = |strays: usize| {
        let mut ill = complete();
        ill.strays = (0..strays).map(|number| format!("gate-{number}")).collect();
        ill.upkeep = vec![Advice {
            reason: Reason::SweepHeld,
            sentence: format!("too many to be removed unasked: the keys of {strays} still work"),
        }];
        ill
    };
    let [one, two, many] = [1, 2, 500].map(with);
    let warned = |before: &Report, after: &Report| {
        let happened = transitions(&made(before), &made(after), &after.warnings());
        let reasons = happened.into_iter().map(|transition| transition.reason);
        reasons.collect::<Vec<_>>()
    };
    let both = ["SweepHeld", "GateWithoutLease"];
    assert_eq!(warned(&complete(), &many), both);
    assert!(warned(&one, &two).is_empty());
    assert!(warned(&many, &one).is_empty());
}

#[test]
fn a_pass_that_the_api_server_ended_keeps_what_was_known_and_tells_keys_only_without_a_directory() {
    let mut api = sample::api("water-data", "water");
    api.status = Some(made(&complete()));
    let now = Timestamp::from_millis(0).unwrap();
    let open = interrupted(&api, "forbidden", None, now);
    shows(
        &open,
        &[(ConditionType::Reconciling, "True/ApiServerError: forbidden")],
    );
    assert!(holds(&open.conditions, ConditionType::DirectorySynced));
    assert!(holds(&open.conditions, ConditionType::Available));
    let denied = Finding::lacks(
        ConditionType::DirectorySynced,
        Reason::StoreDenied,
        "not rebuilt",
    );
    let damaged = interrupted(&api, "forbidden", Some(denied), now);
    shows(
        &damaged,
        &[(
            ConditionType::DirectorySynced,
            "False/StoreDenied: not rebuilt",
        )],
    );
}

#[test]
#[rustfmt::skip]
fn what_is_not_as_it_should_be_is_said() {
    let failed = made(&failed());
    shows(&failed, &[
        (ConditionType::Available, "True/PodsReady: every component has a pod that answers"),
        (ConditionType::Degraded, "True/PodsMissing: pods that answer: gate 1 of 2"),
        (ConditionType::Progressing, "False/RolloutFailed: no progress"),
        (ConditionType::Stalled, "True/RolloutFailed: no progress"),
    ]);
    assert_eq!(failed.version, None);
    let complete = made(&complete());
    shows(&complete, &[(
        ConditionType::DataLoaded,
        "False/NoData: no stress data is loaded: load it with water-ingest; until then its endpoint answers 404 no_data",
    )]);
    assert!(holds(&complete.conditions, ConditionType::Ready), "missing data is no obstacle");
    let silent = report(Readiness::Underway(Reason::RollingOut, String::new()), 0);
    shows(&made(&silent), &[(ConditionType::Available, "False/PodsMissing: no pod of gate answers")]);
}

#[test]
fn data_is_loaded_once_both_datasets_have_rows() {
    for (stress, risk, status, reason, begins) in [
        (0, 0, ConditionStatus::False, Reason::NoData, "neither"),
        (101, 0, ConditionStatus::False, Reason::NoData, "no risk"),
        (0, 101, ConditionStatus::False, Reason::NoData, "no stress"),
        (1, 1, ConditionStatus::True, Reason::Loaded, "1 stress"),
    ] {
        let found = data(Ok(RowCounts { stress, risk }));
        assert_eq!((found.status, found.reason), (status, reason), "{found:?}");
        assert!(found.message.starts_with(begins), "{found:?}");
    }
}

#[test]
fn an_api_is_exposed_once_its_ingress_has_an_address() {
    let exposed = |status: serde_json::Value| {
        let ingress = json!({ "metadata": {}, "status": status });
        let ingress: Ingress = serde_json::from_value(ingress).unwrap();
        let found = addressed("water.example", &ingress);
        (found.status, found.reason)
    };
    let address = json!([{ "ip": "192.0.2.1" }]);
    assert_eq!(
        exposed(json!({ "loadBalancer": { "ingress": address } })),
        (ConditionStatus::True, Reason::AddressAssigned)
    );
    let pending = (ConditionStatus::False, Reason::AddressPending);
    assert_eq!(exposed(json!({})), pending);
    assert_eq!(
        exposed(json!({ "loadBalancer": { "ingress": [] } })),
        pending
    );
}

#[test]
fn each_transition_is_told_once() {
    let rolling_out = report(Readiness::Underway(Reason::RollingOut, String::new()), 0);
    let lives = [rolling_out, complete(), complete(), failed()];
    let (mut events, mut before) = (Vec::new(), WaterDataApiStatus::default());
    for report in lives {
        let after = made(&report);
        events.extend(told(&before, &after));
        before = after;
    }
    // A failed rollout of the same version keeps the version that was complete.
    let first = ["RolloutStarted", "MigrationsComplete", "RolloutComplete"];
    assert_eq!(events[..3], first);
    assert_eq!(events.last().map(String::as_str), Some("RolloutFailed"));
}

#[test]
fn keys_are_counted_by_what_their_status_says() {
    let place = ApiName {
        namespace: "water".into(),
        name: "water-data".into(),
    };
    let key = |reason| {
        let mut key = sample::key("acme", "water");
        let findings = vec![
            Finding::holds(ConditionType::Synced, Reason::Published, ""),
            Finding::holds(ConditionType::Ready, reason, ""),
        ];
        key.status = Some(water_resources::ApiKeyStatus {
            api: Some(place.clone()),
            conditions: stated(&[], findings, 1, Timestamp::from_millis(0).unwrap()),
            ..Default::default()
        });
        key
    };
    let keys = [
        key(Reason::Active),
        key(Reason::Suspended),
        sample::key("new", "water"),
    ];
    assert_eq!(
        count(&place, keys.iter()),
        ApiKeyCounts {
            total: 2,
            active: 1,
            synced: 2
        }
    );
}

fn portal() -> Portal {
    let portal = json!({
        "url": "https://water.example",
        "oidc": {
            "issuer": "https://id.example",
            "clientId": "water-portal",
            "clientSecretRef": { "name": "portal-client", "key": "client-secret" },
        },
    });
    serde_json::from_value(portal).unwrap()
}

#[test]
#[rustfmt::skip]
fn whether_people_can_sign_in_is_told_where_there_is_a_portal() {
    assert!(find(&made(&complete()).conditions, ConditionType::SignInReady).is_none());
    let asked = |answer| {
        let provider: Provider = serde_json::from_value(answer).unwrap();
        let mut report = complete();
        report.sign_in = Some(sign_in(&portal(), Ok(provider)));
        made(&report)
    };
    let fine = asked(json!({ "usable": true, "problem": "" }));
    shows(&fine, &[(
        ConditionType::SignInReady, "True/ProviderUsable: the identity provider https://id.example can be used",
    )]);
    let away = asked(json!({ "usable": false, "problem": "the identity provider did not answer in time" }));
    shows(&away, &[(
        ConditionType::SignInReady,
        "False/ProviderUnusable: nobody can sign in at https://id.example: the identity provider did not answer in time; \
         look at the provider, at spec.portal.oidc.issuer and caRef, and at spec.networkPolicy.egress",
    )]);
    assert!(holds(&away.conditions, ConditionType::Ready), "keys work all the same");
    assert_eq!(told(&fine, &away), ["ProviderUnusable"]);
    assert!(told(&away, &fine).is_empty());
    let problem = "the identity provider refused the exchange: invalid_client";
    let refused = asked(json!({ "usable": false, "problem": problem, "clientRefused": true }));
    shows(&refused, &[(
        ConditionType::SignInReady,
        "False/ClientRefused: nobody can sign in at https://id.example: the identity provider refused the exchange: \
         invalid_client; put the secret that the provider has for client water-portal into key client-secret of Secret \
         portal-client (spec.portal.oidc.clientSecretRef), or correct spec.portal.oidc.clientId; told until somebody has \
         signed in",
    )]);
    assert_eq!(told(&fine, &refused)[0], "ClientRefused");
    assert!(told(&refused, &refused).is_empty());
}

#[test]
fn a_portal_without_pods_leaves_the_api_available() {
    let mut report = complete();
    report.components.push(part("portal", 0));
    let status = made(&report);
    assert!(holds(&status.conditions, ConditionType::Available));
    assert!(holds(&status.conditions, ConditionType::Degraded));
}
