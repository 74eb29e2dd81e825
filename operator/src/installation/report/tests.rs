//! The conditions and events of an installation's life.

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
        migrations: Finding::holds(Aspect::MigrationsComplete, Reason::Complete, ""),
        directory: Finding::holds(Aspect::DirectorySynced, Reason::Published, "").into(),
        data: data(Ok(Loaded {
            stress: 0,
            risk: 101,
        })),
        exposure: Finding::holds(Aspect::ExposureReady, Reason::NotConfigured, ""),
        sign_in: None,
        sweep: None,
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

fn shown(status: &WaterDataApiStatus, aspect: Aspect) -> String {
    let condition = find(&status.conditions, aspect).unwrap();
    format!(
        "{:?}/{}: {}",
        condition.status, condition.reason, condition.message
    )
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
            Finding::holds(Aspect::DirectorySynced, advice[0].reason, message).into();
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
fn a_gate_that_does_not_follow_the_directory_is_warned_of_once() {
    let mut stray = complete();
    stray.strays = vec!["gate-1".into()];
    let (before, after) = (made(&complete()), made(&stray));
    let told: Vec<String> = transitions(&before, &after, &[])
        .into_iter()
        .map(|transition| transition.reason)
        .collect();
    assert_eq!(told, ["GateWithoutLease"]);
    assert_eq!(transitions(&after, &after, &[]), []);
    assert!(shown(&after, Aspect::Degraded).contains("gate-1"));
    assert!(holds(&after.conditions, Aspect::Ready));
}

#[test]
fn a_pass_that_the_api_server_ended_keeps_what_was_known_and_tells_keys_only_without_a_directory() {
    let mut api = sample::api("water-data", "water");
    api.status = Some(made(&complete()));
    let now = Timestamp::from_millis(0).unwrap();
    let open = interrupted(&api, "forbidden", true, now);
    assert_eq!(
        shown(&open, Aspect::Reconciling),
        "True/ApiServerError: forbidden"
    );
    assert!(holds(&open.conditions, Aspect::DirectorySynced));
    assert!(holds(&open.conditions, Aspect::Available));
    let closed = interrupted(&api, "forbidden", false, now);
    assert_eq!(
        shown(&closed, Aspect::DirectorySynced),
        "False/ApiServerError: forbidden"
    );
}

#[test]
fn a_failed_rollout_keeps_serving_and_says_so() {
    let status = made(&failed());
    assert_eq!(
        shown(&status, Aspect::Available),
        "True/PodsReady: every component has a pod that answers"
    );
    assert_eq!(
        shown(&status, Aspect::Degraded),
        "True/PodsMissing: pods that answer: gate 1 of 2"
    );
    assert_eq!(
        shown(&status, Aspect::Progressing),
        "False/RolloutFailed: no progress"
    );
    assert_eq!(
        shown(&status, Aspect::Stalled),
        "True/RolloutFailed: no progress"
    );
    assert_eq!(status.version, None);
}

#[test]
fn missing_data_is_no_obstacle_and_is_said() {
    let status = made(&complete());
    assert_eq!(
        shown(&status, Aspect::DataLoaded),
        "False/NoData: no stress data is loaded: load it with water-ingest; until then its endpoint answers 404 no_data"
    );
    assert!(holds(&status.conditions, Aspect::Ready));
}

#[test]
fn without_a_pod_of_each_component_nothing_is_available() {
    let silent = report(Readiness::Underway(Reason::RollingOut, String::new()), 0);
    assert_eq!(
        shown(&made(&silent), Aspect::Available),
        "False/PodsMissing: no pod of gate answers"
    );
}

#[test]
fn each_transition_is_told_once() {
    let mut told = Vec::new();
    let mut before = WaterDataApiStatus::default();
    for report in [
        report(Readiness::Underway(Reason::RollingOut, String::new()), 0),
        complete(),
        complete(),
        failed(),
    ] {
        let after = made(&report);
        told.extend(
            transitions(&before, &after, &[])
                .into_iter()
                .map(|transition| transition.reason),
        );
        before = after;
    }
    // A failed rollout of the same version keeps the version that was complete.
    assert_eq!(
        told[..3],
        ["RolloutStarted", "MigrationsComplete", "RolloutComplete"]
    );
    assert_eq!(told.last().map(String::as_str), Some("RolloutFailed"));
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
            Finding::holds(Aspect::Synced, Reason::Published, ""),
            Finding::holds(Aspect::Ready, reason, ""),
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
    let portal = serde_json::json!({
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
fn whether_people_can_sign_in_is_told_where_there_is_a_portal() {
    assert!(find(&made(&complete()).conditions, Aspect::SignInReady).is_none());
    let told = |usable, problem: &str| {
        let problem = problem.to_owned();
        let mut report = complete();
        let provider = Provider {
            usable,
            problem,
            client_refused: false,
        };
        report.sign_in = Some(sign_in(&portal(), Ok(provider)));
        made(&report)
    };
    let fine = told(Some(true), "");
    assert_eq!(
        shown(&fine, Aspect::SignInReady),
        "True/ProviderUsable: the identity provider https://id.example can be used"
    );
    let away = told(Some(false), "the identity provider did not answer in time");
    assert_eq!(
        shown(&away, Aspect::SignInReady),
        "False/ProviderUnusable: nobody can sign in at https://id.example: the identity provider did not answer in time; \
         look at the provider, at spec.portal.oidc.issuer and caRef, and at spec.networkPolicy.egress"
    );
    assert!(
        holds(&away.conditions, Aspect::Ready),
        "keys work all the same"
    );
    let reasons = |happened: Vec<Transition>| -> Vec<String> {
        happened
            .into_iter()
            .map(|transition| transition.reason)
            .collect()
    };
    assert_eq!(
        reasons(transitions(&fine, &away, &[])),
        ["ProviderUnusable"]
    );
    assert_eq!(
        reasons(transitions(&away, &fine, &[])),
        Vec::<String>::new()
    );
}

#[test]
fn a_refused_client_names_the_secret_that_is_wrong() {
    let told = r#"{"usable":false,"problem":"the identity provider refused the exchange: invalid_client","clientRefused":true}"#;
    let mut report = complete();
    report.sign_in = Some(sign_in(&portal(), Ok(serde_json::from_str(told).unwrap())));
    let (before, after) = (made(&complete()), made(&report));
    assert_eq!(
        shown(&after, Aspect::SignInReady),
        "False/ClientRefused: nobody can sign in at https://id.example: the identity provider refused the exchange: \
         invalid_client; put the secret that the provider has for client water-portal into key client-secret of Secret \
         portal-client (spec.portal.oidc.clientSecretRef), or correct spec.portal.oidc.clientId; told until somebody has \
         signed in"
    );
    let happened = transitions(&before, &after, &[]);
    assert_eq!(happened[0].reason, "ClientRefused");
    assert_eq!(transitions(&after, &after, &[]), []);
}

#[test]
fn a_portal_without_pods_leaves_the_api_available() {
    let mut report = complete();
    report.components.push(part("portal", 0));
    let status = made(&report);
    assert!(holds(&status.conditions, Aspect::Available));
    assert!(holds(&status.conditions, Aspect::Degraded));
}
