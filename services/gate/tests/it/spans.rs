//! Requests as spans: their export to a collector, and a collector that is down, which costs no request.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;
use water_harness::{Collector, Exported, Network, Port, Proxy, wait_until};
use water_kit::gate::{Behaviour, Overdue};
use water_kit::{Gate, Key, SOON};

use crate::deadline::{all_served, in_time, timed};

const TARGET: &str = "/api/v1/stress";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Starts a gate that sends its spans to this endpoint, however late that answers.
async fn gate(endpoint: &str) -> Gate {
    waiting_for(endpoint, SOON).await
}

/// Starts a gate that sends its spans to this endpoint, and waits for its answers for so long.
async fn waiting_for(endpoint: &str, timeout: Duration) -> Gate {
    let gate = Gate::builder()
        // Longer than the tests wait for its end.
        .set("WATER_DRAIN_SECONDS", 600)
        .set("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .set("OTEL_BSP_SCHEDULE_DELAY", 100)
        .set("OTEL_EXPORTER_OTLP_TIMEOUT", timeout.as_millis());
    gate.start().await
}

/// Stops the gate and returns all of its spans.
async fn all(gate: &Gate, collector: &Collector) -> Vec<Exported> {
    gate.process.stop(SOON).await.unwrap();
    collector.spans().unwrap()
}

/// Returns the only span of a kind.
fn only<'a>(spans: &'a [Exported], kind: &str) -> &'a Exported {
    let mut found = spans
        .iter()
        .filter(|span| format!("{:?}", span.kind) == kind);
    match (found.next(), found.next()) {
        (Some(span), None) => span,
        _ => panic!("not one {kind}: {spans:#?}"),
    }
}

async fn traced(gate: &Gate, key: &Key, flags: &str) -> u16 {
    let (bearer, parent) = (key.bearer(), format!("00-{TRACE}-{PARENT}-{flags}"));
    let fields = [
        ("Authorization", bearer.as_str()),
        ("traceparent", parent.as_str()),
        ("tracestate", "vendor=value"),
        ("X-Request-Id", "observed-1"),
    ];
    let target = format!("{TARGET}?dept=34");
    gate.request("GET", &target, &fields).await.status
}

fn attributes<'a>(pairs: &[(&'a str, &'a str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[tokio::test]
async fn a_request_is_a_span_in_the_clients_trace_and_the_service_is_asked_inside_it() {
    let collector = Collector::start().await.unwrap();
    let gate = gate(&collector.endpoint()).await;
    let key = gate.key().await;
    assert_eq!(traced(&gate, &key, "01").await, 200);
    let asked = gate.service.only();

    let exported = async || -> Result<Vec<Exported>> {
        let spans = collector.spans()?;
        ensure!(spans.len() == 2, "{spans:#?}");
        Ok(spans)
    };
    let spans = wait_until("both spans", SOON, exported).await.unwrap();
    let (server, client) = (only(&spans, "Server"), only(&spans, "Client"));
    assert_eq!(
        (server.trace.as_str(), server.parent.as_str()),
        (TRACE, PARENT)
    );
    assert_eq!((client.trace.as_str(), &client.parent), (TRACE, &server.id));
    let told = format!("00-{TRACE}-{}-01", client.id);
    assert_eq!(asked.values("traceparent"), [told]);
    assert_eq!(asked.values("tracestate"), ["vendor=value"]);

    for span in [server, client] {
        assert_eq!(span.service, "water-gate");
        assert_eq!(span.name, "GET /api/v1/stress");
        assert!(!span.failed);
    }
    assert!(server.nanoseconds > client.nanoseconds && client.nanoseconds > 0);
    let expected = attributes(&[
        ("http.request.method", "GET"),
        ("http.route", TARGET),
        ("http.response.status_code", "200"),
    ]);
    assert_eq!(server.attributes, expected);
    let port = gate.service.address.port().to_string();
    let expected = attributes(&[
        ("http.request.method", "GET"),
        ("url.template", TARGET),
        ("http.response.status_code", "200"),
        ("server.address", "127.0.0.1"),
        ("server.port", &port),
    ]);
    assert_eq!(client.attributes, expected);
    // The gate counts spans once the collector has answered.
    gate.shows(&[r#"water_spans_total{outcome="exported"} 2"#])
        .await;
}

#[tokio::test]
async fn a_request_without_a_trace_begins_one_that_its_log_line_names() {
    let collector = Collector::start().await.unwrap();
    let gate = gate(&collector.endpoint()).await;
    let key = gate.key().await;
    gate.get(TARGET, &key).await;
    let spans = all(&gate, &collector).await;
    let server = only(&spans, "Server");
    assert_eq!(server.parent, "");
    let log = gate.process.log();
    let mut lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = lines.find(|line| line["target"] == "access").unwrap();
    assert_eq!(line["trace.id"], server.trace.as_str());
}

#[tokio::test]
async fn a_trace_that_the_client_does_not_record_is_continued_and_not_exported() {
    let collector = Collector::start().await.unwrap();
    let gate = gate(&collector.endpoint()).await;
    let key = gate.key().await;
    traced(&gate, &key, "00").await;
    let asked = gate.service.only();
    let told = asked.values("traceparent");
    assert!(told[0].starts_with(&format!("00-{TRACE}-")), "{told:?}");
    assert!(
        told[0].ends_with("-00") && !told[0].contains(PARENT),
        "{told:?}"
    );
    assert_eq!(all(&gate, &collector).await, []);
}

#[tokio::test]
async fn a_refusal_is_a_span_with_its_reason_and_without_the_clients_text() {
    let collector = Collector::start().await.unwrap();
    let gate = gate(&collector.endpoint()).await;
    gate.request("PLANTED", "/planted?planted=1", &[]).await;
    let spans = all(&gate, &collector).await;
    let expected = attributes(&[
        ("http.request.method", "_OTHER"),
        ("http.response.status_code", "401"),
        ("error.type", "missing_credentials"),
    ]);
    let [span] = spans.as_slice() else {
        panic!("not one span: {spans:#?}")
    };
    assert_eq!((span.name.as_str(), &span.attributes), ("HTTP", &expected));
    assert!(!span.failed, "the client's fault is no failure of the gate");
}

#[tokio::test]
async fn a_service_that_breaks_off_is_a_failure_of_both_spans() {
    let collector = Collector::start().await.unwrap();
    let gate = gate(&collector.endpoint()).await;
    let key = gate.key().await;
    gate.service.behave(Behaviour::Close);
    assert_eq!(gate.get(TARGET, &key).await.status, 503);
    let spans = all(&gate, &collector).await;
    let (server, client) = (only(&spans, "Server"), only(&spans, "Client"));
    assert!(server.failed && client.failed);
    assert_eq!(server.attributes["error.type"], "upstream_unavailable");
    assert_eq!(client.attributes["error.type"], "broken");
    assert_eq!(client.attributes.get("http.response.status_code"), None);
}

#[tokio::test]
async fn a_collector_that_takes_nothing_costs_no_request_and_delays_no_end() {
    in_time(loses_its_spans).await;
}

async fn loses_its_spans() -> Result<(), Overdue> {
    let (away, collector) = (Port::reserve().unwrap(), Collector::start().await.unwrap());
    let silent = Proxy::before(collector.address()).await.unwrap();
    silent.set(Network::BlackHole);
    for (address, logged) in [
        (away.address(), "the collector takes no spans"),
        (silent.address(), "the last spans were not exported"),
    ] {
        let gate = waiting_for(&format!("http://{address}"), Duration::from_secs(1)).await;
        let key = gate.publish(Key::new().on_plan("Unlimited")).await;
        let mut answers = Vec::new();
        for _ in 0..50 {
            answers.push(timed(gate.get(TARGET, &key)).await);
        }
        all_served(&answers)?;
        if address == away.address() {
            gate.shows(&[r#"water_spans_total{outcome="failed"} 100"#])
                .await;
        }
        let status = gate.process.stop(SOON).await.unwrap();
        let log = gate.process.log();
        assert!(status.success() && log.contains("drained in time"), "{log}");
        assert_eq!(log.matches(logged).count(), 1, "{log}");
    }
    assert!(silent.connections() > 0);
    Ok(())
}
