//! Requests as spans: what a collector is sent, and that one which is away costs no request.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::Value;
use water_harness::{Collector, Exported, Network, Port, Proxy, find_key_text, wait_until};

use crate::confidentiality::{heads, sent};
use crate::recorder::Behaviour;
use crate::site::{GATE, Key, SOON, Site};

const TARGET: &str = "/api/v1/stress";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A gate that sends its spans there.
async fn site(endpoint: &str) -> Site {
    Site::start_with(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1000"),
    ])
    .await
}

/// Every span of a gate that is stopped.
async fn all(site: &Site, collector: &Collector) -> Vec<Exported> {
    site.gate.stop(SOON).await.unwrap();
    collector.spans().unwrap()
}

/// The only span of a kind.
fn only<'a>(spans: &'a [Exported], kind: &str) -> &'a Exported {
    let mut found = spans
        .iter()
        .filter(|span| format!("{:?}", span.kind) == kind);
    match (found.next(), found.next()) {
        (Some(span), None) => span,
        _ => panic!("not one {kind}: {spans:#?}"),
    }
}

async fn traced(site: &Site, key: &Key, flags: &str) -> u16 {
    let (bearer, parent) = (key.bearer(), format!("00-{TRACE}-{PARENT}-{flags}"));
    let fields = [
        ("Authorization", bearer.as_str()),
        ("traceparent", parent.as_str()),
        ("tracestate", "vendor=value"),
        ("X-Request-Id", "observed-1"),
    ];
    let target = format!("{TARGET}?dept=34");
    site.request("GET", &target, &fields).await.status
}

fn attributes<'a>(pairs: &[(&'a str, &'a str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[tokio::test]
async fn a_request_is_a_span_in_the_clients_trace_and_the_service_is_asked_inside_it() {
    let collector = Collector::start().await.unwrap();
    let site = site(&collector.endpoint()).await;
    let key = site.key().await;
    assert_eq!(traced(&site, &key, "01").await, 200);
    let asked = site.service.only();

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
    let port = site.service.address.port().to_string();
    let expected = attributes(&[
        ("http.request.method", "GET"),
        ("url.template", TARGET),
        ("http.response.status_code", "200"),
        ("server.address", "127.0.0.1"),
        ("server.port", &port),
    ]);
    assert_eq!(client.attributes, expected);
    // The gate counts them once the collector has answered.
    let counted = async || {
        let metrics = site.admin("/metrics").await?;
        let line = r#"water_spans_total{outcome="exported"} 2"#;
        ensure!(metrics.text()?.contains(line), "{metrics:?}");
        Ok(())
    };
    wait_until("both spans to be counted", SOON, counted)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_request_without_a_trace_begins_one_that_its_log_line_names() {
    let collector = Collector::start().await.unwrap();
    let site = site(&collector.endpoint()).await;
    let key = site.key().await;
    site.get(TARGET, &key).await;
    let spans = all(&site, &collector).await;
    let server = only(&spans, "Server");
    assert_eq!(server.parent, "");
    let log = site.gate.log();
    let mut lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = lines.find(|line| line["target"] == "access").unwrap();
    assert_eq!(line["trace.id"], server.trace.as_str());
}

#[tokio::test]
async fn a_trace_that_the_client_does_not_record_is_continued_and_not_exported() {
    let collector = Collector::start().await.unwrap();
    let site = site(&collector.endpoint()).await;
    let key = site.key().await;
    traced(&site, &key, "00").await;
    let asked = site.service.only();
    let told = asked.values("traceparent");
    assert!(told[0].starts_with(&format!("00-{TRACE}-")), "{told:?}");
    assert!(
        told[0].ends_with("-00") && !told[0].contains(PARENT),
        "{told:?}"
    );
    assert_eq!(all(&site, &collector).await, []);
}

#[tokio::test]
async fn a_refusal_is_a_span_with_its_reason_and_without_the_clients_text() {
    let collector = Collector::start().await.unwrap();
    let site = site(&collector.endpoint()).await;
    site.request("PLANTED", "/planted?planted=1", &[]).await;
    let spans = all(&site, &collector).await;
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
    let site = site(&collector.endpoint()).await;
    let key = site.key().await;
    site.service.behave(Behaviour::Close);
    assert_eq!(site.get(TARGET, &key).await.status, 503);
    let spans = all(&site, &collector).await;
    let (server, client) = (only(&spans, "Server"), only(&spans, "Client"));
    assert!(server.failed && client.failed);
    assert_eq!(server.attributes["error.type"], "upstream_unavailable");
    assert_eq!(client.attributes["error.type"], "broken");
    assert_eq!(client.attributes.get("http.response.status_code"), None);
}

#[tokio::test]
async fn no_span_holds_a_keys_text_or_who_asked() {
    let collector = Collector::start().await.unwrap();
    let site = site(&collector.endpoint()).await;
    let key = site.key().await;
    let traced = format!("\r\ntraceparent: 00-{TRACE}-{PARENT}-01\r\n\r\n");
    for head in heads(&key.text) {
        sent(&site, &head).await;
        sent(&site, &head.replace("\r\n\r\n", &traced)).await;
    }
    let spans = all(&site, &collector).await;
    let answered = |span: &Exported| span.attributes.get("http.response.status_code").cloned();
    assert!(
        spans
            .iter()
            .any(|span| answered(span).as_deref() == Some("200"))
    );
    let bytes = collector.bytes();
    assert_eq!(find_key_text(&bytes), None);
    let holds = |text: &str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(holds(TARGET));
    for text in [key.record.account.as_str(), key.record.key_id.as_str()] {
        assert!(!holds(text), "{text}");
    }
}

#[tokio::test]
async fn a_collector_that_is_away_costs_no_request_and_is_told_once() {
    let away = Port::reserve().unwrap();
    let site = site(&format!("http://{}", away.address())).await;
    let key = site.publish(Key::new().on_plan("Unlimited")).await;
    for _ in 0..200 {
        assert_eq!(site.get(TARGET, &key).await.status, 200);
    }
    let lost = async || -> Result<()> {
        let metrics = site.admin("/metrics").await?;
        let failed = r#"water_spans_total{outcome="failed"} "#;
        let mut lines = metrics.text()?.lines();
        let count = lines.find_map(|line| line.strip_prefix(failed));
        ensure!(count == Some("400"), "{count:?} spans are given up");
        Ok(())
    };
    wait_until("the spans to be given up", SOON, lost)
        .await
        .unwrap();
    let status = site.gate.stop(SOON).await.unwrap();
    let log = site.gate.log();
    assert!(status.success() && log.contains("drained in time"), "{log}");
    assert_eq!(
        log.matches("the collector takes no spans").count(),
        1,
        "{log}"
    );
}

#[tokio::test]
async fn a_collector_that_never_answers_delays_neither_requests_nor_the_end() {
    let collector = Collector::start().await.unwrap();
    let proxy = Proxy::before(collector.address()).await.unwrap();
    proxy.set(Network::BlackHole);
    let site = site(&format!("http://{}", proxy.address())).await;
    let key = site.publish(Key::new().on_plan("Unlimited")).await;
    for _ in 0..200 {
        assert_eq!(site.get(TARGET, &key).await.status, 200);
    }
    let status = site.gate.stop(SOON).await.unwrap();
    let log = site.gate.log();
    assert!(status.success() && log.contains("drained in time"), "{log}");
    assert!(log.contains("the last spans were not exported"), "{log}");
    assert!(proxy.connections() > 0);
}

#[test]
fn a_collectors_address_that_cannot_be_used_is_said_at_the_start() {
    let mut gate = Command::new(GATE);
    let set = [("OTEL_EXPORTER_OTLP_ENDPOINT", "https://planted")];
    let output = gate.env_clear().envs(set).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("OTEL_EXPORTER_OTLP_ENDPOINT is not usable: spans are sent without TLS"));
    assert!(!said.contains("planted"), "{said}");
}
