//! A request as one trace, through the gate and a service, at a collector outside of the cluster.

use std::process;

use anyhow::{Context, Result, ensure};
use water_e2e::{Cluster, PATIENCE};
use water_harness::{Collector, Exported, find_key_text};

const CLIENT: &str = "00f067aa0ba902b7";

#[tokio::test]
async fn a_request_is_one_trace_from_the_client_through_the_gate_to_the_service() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let api = cluster.api()?;
    let endpoint = api["spec"]["telemetry"]["otlpEndpoint"].as_str();
    let endpoint = endpoint.context("the pods export no spans: run `cargo dev test`")?;
    let address = endpoint.trim_start_matches("http://").parse()?;
    let collector = Collector::start_at(address).await?;

    let key = cluster.key().await?;
    // Spans of an earlier run may still be on their way.
    let trace = format!("4bf92f3577b34da6a3ce929d{:08x}", process::id());
    let parent = format!("00-{trace}-{CLIENT}-01");
    let fields = [("traceparent", parent.as_str())];
    let answer = cluster
        .water
        .get_with("/api/v1/stress?dept=34", &key, &fields)
        .await?;
    assert_eq!(answer.status, 200);

    let exported = async || {
        let mut spans: Vec<Exported> = Vec::new();
        for span in collector.spans()? {
            // A pod sends its spans again if it was told too late that they had arrived.
            if span.trace == trace && !spans.contains(&span) {
                spans.push(span);
            }
        }
        ensure!(spans.len() == 3, "{spans:#?}");
        Ok(spans)
    };
    let spans = cluster.wait_until("all spans", PATIENCE, exported).await?;
    let inside = |parent: &str| -> Result<&Exported> {
        let mut found = spans.iter().filter(|span| span.parent == parent);
        found
            .next()
            .with_context(|| format!("nothing in {parent}: {spans:#?}"))
    };
    let gate = inside(CLIENT)?;
    let exchange = inside(&gate.id)?;
    let service = inside(&exchange.id)?;
    let names = [gate, exchange, service].map(|span| (span.service.as_str(), span.name.as_str()));
    let name = "GET /api/v1/stress";
    let expected = ["water-gate", "water-gate", "water-departements"];
    assert_eq!(names, expected.map(|program| (program, name)));
    assert_eq!(find_key_text(collector.bytes()), None);
    Ok(())
}
