//! Only the gate's signature for exactly this request, at this time, opens anything.

use water_harness::Answer;

use crate::fixture::{NEXT, Running, Signature};

const PATH: &str = "/api/v1/stress";

async fn with(service: &Running, value: &str) -> Answer {
    service
        .raw("GET", PATH, &[("X-Water-Identity", value)])
        .await
}

fn refused(answer: &Answer, why: &str) {
    assert_eq!(answer.status, 401, "{why}: {answer:?}");
    let body = answer.json().unwrap();
    assert_eq!(
        (&body["code"], &body["data"]),
        (&"invalid_identity".into(), &serde_json::Value::Null),
        "{why}"
    );
}

#[tokio::test]
async fn a_request_without_an_identity_is_refused_on_every_path() {
    let (service, _) = Running::with_data().await;
    for path in [
        PATH,
        "/api/v1/risque?dept=34",
        "/api/v1/none",
        "/",
        "/api/v1/stress?dept=%",
    ] {
        refused(&service.raw("GET", path, &[]).await, path);
    }
}

#[tokio::test]
async fn a_bearer_key_is_no_identity() {
    let (service, _) = Running::with_data().await;
    refused(
        &service
            .raw("GET", PATH, &[("Authorization", "Bearer something")])
            .await,
        "a key",
    );
}

#[tokio::test]
async fn a_forged_or_altered_identity_is_refused() {
    let (service, _) = Running::with_data().await;
    let good = Signature::default().value("GET", PATH);
    let other = Signature {
        key: "33333333333333333333333333333333333333333333333333333333333333cc",
        ..Signature::default()
    };
    refused(
        &with(&service, &other.value("GET", PATH)).await,
        "another key",
    );
    refused(
        &with(&service, &good.replace("account=acme", "account=other")).await,
        "another account",
    );
    refused(
        &with(&service, &good.replace("plan=Enterprise", "plan=Free")).await,
        "another plan",
    );
    refused(
        &with(&service, good.split(";mac=").next().unwrap()).await,
        "no signature",
    );
    refused(&with(&service, &good.to_uppercase()).await, "another case");
    assert_eq!(with(&service, &good).await.status, 200);
}

#[tokio::test]
async fn an_identity_for_another_request_is_refused() {
    let (service, _) = Running::with_data().await;
    for (method, target) in [
        ("GET", "/api/v1/risque"),
        ("GET", "/api/v1/stress?dept=34"),
        ("HEAD", PATH),
    ] {
        refused(
            &with(&service, &Signature::default().value(method, target)).await,
            target,
        );
    }
}

#[tokio::test]
async fn two_identities_are_none() {
    let (service, _) = Running::with_data().await;
    let good = Signature::default().value("GET", PATH);
    let twice = [
        ("X-Water-Identity", good.as_str()),
        ("x-water-identity", good.as_str()),
    ];
    refused(&service.raw("GET", PATH, &twice).await, "two");
}

#[tokio::test]
async fn an_identity_is_good_for_two_hours_either_way_and_its_distance_is_shown() {
    let (service, _) = Running::with_data().await;
    // Five minutes of leeway beyond the two hours, and half a minute that an identity is for.
    let (earliest, latest) = (-7_470_000, 7_530_000);
    for (expires_in, status) in [
        (earliest - 5_000, 401),
        (earliest + 5_000, 200),
        (latest + 5_000, 401),
        (latest - 5_000, 200),
    ] {
        let signature = Signature {
            expires_in,
            ..Signature::default()
        };
        let answer = with(&service, &signature.value("GET", PATH)).await;
        assert_eq!(answer.status, status, "{expires_in} ms");
    }
    let metrics = service.admin("/metrics").await;
    let shown = "water_identity_clock_skew_seconds 749";
    assert!(metrics.text().unwrap().contains(shown), "{metrics:?}");
}

#[tokio::test]
async fn the_next_key_is_believed_before_the_gate_signs_with_it() {
    let (service, _) = Running::with_data().await;
    let next = Signature {
        key: NEXT,
        ..Signature::default()
    };
    assert_eq!(with(&service, &next.value("GET", PATH)).await.status, 200);
}
