//! The service's part of a trace.

use water_harness::{Collector, HttpClient, Port, Postgres, Program, wait_until};

use crate::fixture::{CURRENT, SOON, Signature, migrated};

const TARGET: &str = "/api/v1/hydrorisk";

#[tokio::test]
async fn a_request_is_a_span_inside_the_gates() {
    let collector = Collector::start().await.unwrap();
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let http = Port::reserve().unwrap();
    let running = Program::new(env!("CARGO_BIN_EXE_water-history"))
        .env("WATER_LISTEN_ADDRESS", http.address().to_string())
        .env("WATER_ADMIN_ADDRESS", "127.0.0.1:0")
        .env("WATER_POSTGRES_URL", database.url_as("water_reader"))
        .env("WATER_IDENTITY_CURRENT", CURRENT)
        .env("WATER_STOP_DELAY_SECONDS", "0")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint())
        .start()
        .unwrap();
    let serving = async || match running.log() {
        log if log.contains("the database can be read") => Ok(()),
        log => anyhow::bail!(log),
    };
    wait_until("the database", SOON, serving).await.unwrap();

    let identity = Signature::default().value("GET", TARGET);
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let fields = [
        ("X-Water-Identity", identity.as_str()),
        ("traceparent", parent),
    ];
    let mut client = HttpClient::connect(http.address()).await.unwrap();
    let answer = client.request("GET", TARGET, &fields).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(running.stop(SOON).await.unwrap().success());

    let spans = collector.spans().unwrap();
    let [span] = spans.as_slice() else {
        panic!("not one span: {spans:#?}")
    };
    assert_eq!(span.service, "water-history");
    assert_eq!(span.trace, "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(span.parent, "00f067aa0ba902b7");
    assert_eq!(span.name, format!("GET {TARGET}"));
    assert_eq!(span.attributes["http.response.status_code"], "200");
    assert_eq!(span.attributes["http.route"], TARGET);
    assert_eq!(span.attributes.get("error.type").map(String::as_str), None);
}
