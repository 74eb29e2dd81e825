//! Log and metrics of requests: one line each, and counts with bounded labels.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;
use water_harness::wait_until;
use water_kit::{Gate, Key, SOON};

const TARGET: &str = "/api/v1/stress";

/// Returns the access log's line of a request; lines are written a moment after the answer.
async fn line(gate: &Gate, id: &str) -> Value {
    let find = async || -> Result<Value> {
        let log = gate.process.log();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let mut access = lines.filter(|line: &Value| line["target"] == "access");
        access
            .find(|line| line["request.id"] == id)
            .context("no such line")
    };
    wait_until("the access log", SOON, find).await.unwrap()
}

#[tokio::test]
async fn a_request_is_one_line_with_who_what_and_how_long_and_a_refusal_its_reason() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    let bearer = key.bearer();
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let fields = [
        ("Authorization", bearer.as_str()),
        ("X-Request-Id", "observed-1"),
        ("traceparent", traceparent),
    ];
    let answer = gate.request("GET", "/api/v1/stress?dept=34", &fields).await;
    assert_eq!(answer.header("x-request-id"), Some("observed-1"));
    let served = line(&gate, "observed-1").await;
    assert_eq!(served["route"], TARGET);
    assert_eq!(served["status"], 200);
    assert_eq!(served["account.id"], key.record.account.as_str());
    assert_eq!(served["key.id"], key.record.key_id.as_str());
    assert_eq!(served["trace.id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    let millis = |name: &str| served[name].as_f64().unwrap();
    assert!(millis("gate_ms") > 0.0 && millis("upstream_ms") > 0.0);
    assert!(millis("gate_ms") + millis("upstream_ms") <= millis("duration_ms"));
    assert!(!served.to_string().contains("dept"), "{served}");

    let fields = [("X-Request-Id", "observed-2")];
    gate.request("GET", "/private/path", &fields).await;
    let refused = line(&gate, "observed-2").await;
    assert_eq!(refused["route"], "-");
    assert_eq!(refused["reason"], "missing_credentials");
    assert!(!gate.process.log().contains("/private/path"));

    let denied = gate.publish(Key::new().on_plan("Free")).await;
    let bearer = denied.bearer();
    let fields = [("Authorization", &*bearer), ("X-Request-Id", "observed-3")];
    gate.request("GET", TARGET, &fields).await;
    let refused = line(&gate, "observed-3").await;
    assert_eq!(refused["reason"], "plan_insufficient");
    assert_eq!(refused["key.id"], denied.record.key_id.as_str());
}

#[tokio::test]
async fn requests_are_counted_by_route_status_and_reason() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    let suspended = gate.publish(Key::new().suspended()).await;
    gate.get(TARGET, &key).await;
    gate.get("/unknown", &key).await;
    gate.get(TARGET, &suspended).await;
    gate.request("GET", TARGET, &[]).await;
    let none = |status: u16, reason: &str| {
        format!(
            r#"water_gate_requests_total{{route="none",status="{status}",reason="{reason}"}} 1"#
        )
    };
    gate.shows(&[
        r#"water_gate_requests_total{route="stress",status="200",reason="none"} 1"#,
        &none(404, "not_found"),
        &none(401, "key_suspended"),
        &none(401, "missing_credentials"),
        "water_gate_directory_keys 2.0",
        "water_gate_directory_current 1.0",
        "water_gate_limiter_seconds_count 1",
        r#"water_gate_service_seconds_count{service="departements"} 1"#,
    ])
    .await;
}

/// Returns every series of the gate's own metrics, with its labels.
async fn series(gate: &Gate) -> BTreeSet<String> {
    let metrics = gate.admin("/metrics").await.unwrap();
    let lines = metrics.text().unwrap().lines();
    let samples = lines.filter(|line| !line.starts_with('#'));
    samples
        .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
        .collect()
}

#[tokio::test]
async fn no_label_comes_from_what_a_client_sends_or_who_it_is() {
    let gate = Gate::start().await;
    let ask = async |number: u32| {
        let key = gate.key().await;
        gate.get("/api/v1/stress?dept=34", &key).await;
        gate.get(&format!("/planted-{number}"), &key).await;
        let query = format!("/api/v1/stress?planted{number}=1");
        gate.get(&query, &key).await;
        let wrong = format!("Bearer {number:040}");
        let fields = [("Authorization", wrong.as_str())];
        gate.request("GET", TARGET, &fields).await;
        let method = format!("PLANTED{number}");
        let bearer = key.bearer();
        let fields = [("Authorization", bearer.as_str())];
        gate.request(&method, TARGET, &fields).await;
    };
    ask(0).await;
    let before = series(&gate).await;
    for number in 1..=10 {
        ask(number).await;
    }
    assert_eq!(series(&gate).await, before);
    let planted = ["lanted", "account-"];
    let is_planted = |line: &&String| planted.iter().any(|text| line.contains(text));
    assert_eq!(before.iter().find(is_planted), None);
}
