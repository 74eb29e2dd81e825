//! Formats other than JSON: the client's choice, the header to the service, and the size of answers.

use water_harness::Answer;
use water_kit::gate::{Behaviour, ok, with};
use water_kit::{Gate, Key};

use crate::whole::{is, problem};

const HISTORY: &str = "/api/v1/hydrorisk";
const CSV: &str = "text/csv; charset=utf-8; header=present";

/// Requests a format, and names another one to the service, which only the gate may do.
async fn get(gate: &Gate, key: &Key, target: &str, accept: &str) -> Answer {
    let bearer = key.bearer();
    let fields = [
        ("Authorization", bearer.as_str()),
        ("Accept", accept),
        ("X-Water-Format", "ndjson"),
    ];
    gate.request("GET", target, &fields).await
}

#[tokio::test]
async fn the_service_hears_which_form_the_client_prefers() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    for (target, accept, named) in [
        ("/api/v1/hydrorisk?format=csv", "*/*", &["csv"][..]),
        ("/api/v1/hydrorisk?format=json", "text/csv", &[]),
        ("/api/v1/risque?format=csv", "application/json", &["csv"]),
        ("/api/v1/sources", "text/csv, */*;q=0.1", &[]),
        (HISTORY, "text/csv", &["csv"]),
        (HISTORY, "application/x-ndjson", &["ndjson"]),
        (HISTORY, "application/jsonl", &["ndjson"]),
        (HISTORY, "application/json;q=0.1, text/csv;q=0.2", &["csv"]),
        (HISTORY, "text/csv, application/json", &[]),
        (HISTORY, "*/*", &[]),
        ("/api/v1/stress?dept=34", "text/csv", &["csv"]),
        ("/api/v1/risque", "application/x-ndjson", &[]),
        ("/api/v1/sources", "text/csv", &[]),
    ] {
        let answer = get(&gate, &key, target, accept).await;
        // A service may answer JSON whatever the requested format.
        assert_eq!(answer.status, 200, "{target} {accept}: {answer:?}");
        let seen = gate.service.seen().pop().unwrap();
        assert_eq!(seen.values("x-water-format"), named, "{target} {accept}");
    }
}

#[tokio::test]
async fn an_unknown_form_is_refused_by_its_name_and_the_service_is_not_asked() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    for query in ["format=xml", "format=", "format=csv&format=csv"] {
        let answer = get(&gate, &key, &format!("{HISTORY}?{query}"), "*/*").await;
        assert_eq!(problem(&answer), is(400, "invalid_parameter"), "{query}");
        assert_eq!(answer.json().unwrap()["parameter"], "format", "{query}");
    }
    // A JSON document would be read as one record.
    let answer = get(&gate, &key, "/api/v1/stress?format=ndjson", "text/csv").await;
    let detail = answer.json().unwrap()["detail"].clone();
    assert_eq!(detail, "format must be one of csv, json.");
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn a_page_in_the_form_that_was_asked_for_goes_through_with_its_token() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    let fields = format!(
        "content-type: {CSV}\r\nx-changes-token: opaque\r\nx-total-count: 7\r\nlink: <{HISTORY}?cursor=a>; rel=\"next\"\r\n"
    );
    let page = with("200 OK", &fields, "id\r\na-1\r\n");
    gate.service.behave(Behaviour::Answer(page));
    let answer = get(&gate, &key, HISTORY, "text/csv").await;
    assert_eq!(
        (answer.status, answer.text().unwrap()),
        (200, "id\r\na-1\r\n")
    );
    assert_eq!(answer.header("content-type"), Some(CSV));
    assert_eq!(answer.header("x-changes-token"), Some("opaque"));
    assert_eq!(answer.header("x-total-count"), Some("7"));
    assert!(answer.header("link").unwrap().contains("cursor=a"));

    // CSV was not requested here, so it is not a valid answer.
    for accept in ["application/x-ndjson", "application/json"] {
        let answer = get(&gate, &key, HISTORY, accept).await;
        assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
    }
}

#[tokio::test]
async fn a_page_of_900_kib_comes_whole_and_a_larger_answer_than_1_mib_is_refused() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    let page = "0123456789abcde\n".repeat(900 * 64);
    gate.service.behave(Behaviour::Answer(ok(CSV, &page)));
    for _ in 0..3 {
        let answer = get(&gate, &key, HISTORY, "text/csv").await;
        assert!(answer.status == 200 && answer.body == page.as_bytes());
    }
    let large = "x".repeat(1024 * 1024 + 1);
    gate.service.behave(Behaviour::Answer(ok(CSV, &large)));
    let answer = get(&gate, &key, HISTORY, "text/csv").await;
    assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
}
