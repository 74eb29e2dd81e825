//! What the gate says about its work: one line a request, and counts with bounded labels.

use anyhow::{Context, Result};
use serde_json::Value;
use water_harness::wait_until;

use crate::site::{SOON, Site};

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
    ];
    site.request("GET", "/api/v1/stress?dept=34", &fields).await;
    let line = line(&site, "observed-1").await;
    assert_eq!(line["route"], "/api/v1/stress");
    assert_eq!(line["status"], 200);
    assert_eq!(line["account.id"], key.record.account.as_str());
    assert_eq!(line["key.id"], key.record.key_id.as_str());
    assert!(line["duration_ms"].as_f64() >= line["upstream_ms"].as_f64());
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
