//! What the gate says about its work: one line a request, and counts with bounded labels.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;
use water_harness::wait_until;

use crate::site::{Key, SOON, Site};

/// The access log's line of a request; lines are written a moment after the answer.
async fn line(site: &Site, id: &str) -> Value {
    let find = async || -> Result<Value> {
        let log = site.gate.log();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut access = lines.filter(|line| line["target"] == "access");
        access
            .find(|line| line["request.id"] == id)
            .context("no such line")
    };
    wait_until("the access log", SOON, find).await.unwrap()
}

#[tokio::test]
async fn a_request_is_one_line_with_who_what_and_how_long() {
    let site = Site::start().await;
    let key = site.key().await;
    let bearer = key.bearer();
    let fields = [
        ("Authorization", bearer.as_str()),
        ("X-Request-Id", "observed-1"),
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
    ];
    site.request("GET", "/api/v1/stress?dept=34", &fields).await;
    let line = line(&site, "observed-1").await;
    assert_eq!(line["route"], "/api/v1/stress");
    assert_eq!(line["status"], 200);
    assert_eq!(line["account.id"], key.record.account.as_str());
    assert_eq!(line["key.id"], key.record.key_id.as_str());
    assert_eq!(line["trace.id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    let millis = |name: &str| line[name].as_f64().unwrap();
    assert!(millis("gate_ms") > 0.0 && millis("upstream_ms") > 0.0);
    assert!(millis("gate_ms") + millis("upstream_ms") <= millis("duration_ms"));
    assert!(!line.to_string().contains("dept"), "{line}");
}

#[tokio::test]
async fn a_refusal_is_logged_with_its_reason_and_not_with_its_path() {
    let site = Site::start().await;
    site.request("GET", "/private/path", &[("X-Request-Id", "observed-2")])
        .await;
    let line = line(&site, "observed-2").await;
    assert_eq!(
        (&line["route"], &line["reason"]),
        (&"-".into(), &"missing_credentials".into())
    );
    assert!(!site.gate.log().contains("/private/path"));
}

#[tokio::test]
async fn requests_are_counted_by_route_status_and_reason() {
    let site = Site::start().await;
    let key = site.key().await;
    site.get("/api/v1/stress", &key).await;
    site.get("/unknown", &key).await;
    let metrics = site.admin("/metrics").await.unwrap();
    let text = metrics.text().unwrap();
    for line in [
        r#"water_gate_requests_total{route="stress",status="200",reason="none"} 1"#,
        r#"water_gate_requests_total{route="none",status="404",reason="not_found"} 1"#,
        "water_gate_directory_keys 1.0",
        "water_gate_directory_current 1.0",
        "water_gate_limiter_seconds_count 1",
        r#"water_gate_service_seconds_count{service="departements"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

/// Every series of the gate's own metrics, with its labels.
async fn series(site: &Site) -> BTreeSet<String> {
    let metrics = site.admin("/metrics").await.unwrap();
    let lines = metrics.text().unwrap().lines();
    let samples = lines.filter(|line| !line.starts_with('#'));
    samples
        .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
        .collect()
}

#[tokio::test]
async fn no_label_comes_from_what_a_client_sends() {
    let site = Site::start().await;
    let ask = async |number: u32| {
        let key = site.key().await;
        site.get("/api/v1/stress?dept=34", &key).await;
        site.get(&format!("/planted-{number}"), &key).await;
        site.get(&format!("/api/v1/stress?planted{number}=1"), &key)
            .await;
        let wrong = format!("Bearer {number:040}");
        let fields = [("Authorization", wrong.as_str())];
        site.request("GET", "/api/v1/stress", &fields).await;
        let method = format!("PLANTED{number}");
        let bearer = key.bearer();
        let fields = [("Authorization", bearer.as_str())];
        site.request(&method, "/api/v1/stress", &fields).await;
    };
    ask(0).await;
    let before = series(&site).await;
    for number in 1..=10 {
        ask(number).await;
    }
    assert_eq!(series(&site).await, before);
    let planted = before.iter().find(|line| line.contains("lanted"));
    assert_eq!(planted, None);
}

#[tokio::test]
async fn refusals_are_counted_by_their_reason() {
    let site = Site::start().await;
    site.request("GET", "/api/v1/stress", &[]).await;
    let fields = [("Authorization", "Bearer x")];
    site.request("GET", "/api/v1/stress", &fields).await;
    let suspended = site.publish(Key::new().suspended()).await;
    site.get("/api/v1/stress", &suspended).await;
    let series = series(&site).await;
    for reason in ["missing_credentials", "invalid_key", "key_suspended"] {
        let counted = format!(r#"route="none",status="401",reason="{reason}""#);
        assert!(
            series.iter().any(|line| line.contains(&counted)),
            "{reason}: {series:#?}"
        );
    }
}
