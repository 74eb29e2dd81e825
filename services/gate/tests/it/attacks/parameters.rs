//! Queries that two parties could decode differently.

use serde_json::{Value, json};
use water_kit::Gate;

use super::{HOST, request, with_key};
use crate::whole::{all_answers, refusal, served};

const UNDECODABLE: [&str; 14] = [
    "%",
    "dept=%4",
    "x=%zz",
    "%zz=x",
    "a=%ff",
    "%ff=1",
    "a=%c0%af",
    "a=%ed%a0%80",
    "a=%f8%88%80%80%80",
    "dept=%00",
    "%00=1",
    "limit=5&x=%",
    "%&limit=5",
    "a=b&&c=%e2%82",
];

/// Names that are no parameter of a history.
const UNKNOWN: [&str; 6] = [
    "dept=34",
    "limit=5&Limit=6",
    "limit[]=5",
    "%6Cimit=5&utm=1",
    "=5",
    "limit%20=5",
];

/// Queries of a history as sent, and as forwarded for the service to validate.
const QUERIES: [(&str, &str); 22] = [
    ("", ""),
    ("?", ""),
    ("?limit", "?limit="),
    ("?limit=", "?limit="),
    ("?limit=5&offset=10", "?limit=5&offset=10"),
    ("?_=34&utm_source=x&limit=5&utm_=6", "?limit=5"),
    (
        "?limit=5000&cursor=a.b-c_d&changedSince=e&_=1",
        "?limit=5000&cursor=a.b-c_d&changedSince=e",
    ),
    ("?%66ormat=ndjson&limit=5", "?format=ndjson&limit=5"),
    ("?%6Cimit=5", "?limit=5"),
    ("?limit=5&limit=6", "?limit=5&limit=6"),
    ("?limit=05", "?limit=05"),
    ("?limit=%2B5", "?limit=%2B5"),
    ("?limit=+5", "?limit=%205"),
    ("?limit=%205", "?limit=%205"),
    ("?limit=5.0", "?limit=5.0"),
    ("?limit=1e2", "?limit=1e2"),
    ("?limit=%D9%A5", "?limit=%D9%A5"),
    ("?limit=-1", "?limit=-1"),
    ("?limit=5%26offset%3D1", "?limit=5%26offset%3D1"),
    (
        "?limit=5%20HTTP/1.1%0D%0AX:%20y",
        "?limit=5%20HTTP%2F1.1%0D%0AX%3A%20y",
    ),
    (
        "?limit=999999999999999999999999999999",
        "?limit=999999999999999999999999999999",
    ),
    (
        "?limit=5;offset=9007199254740992",
        "?limit=5%3Boffset%3D9007199254740992",
    ),
];

fn of_history(query: &str) -> String {
    format!("GET /api/v1/hydrorisk{query} HTTP/1.1")
}

/// Returns bad percent-encoding, invalid UTF-8, and NUL, in names and in values.
pub fn undecodable() -> Vec<Vec<u8>> {
    let line = |query: &str| format!("GET /api/v1/stress?{query} HTTP/1.1");
    UNDECODABLE
        .map(|query| request(&line(query), HOST))
        .to_vec()
}

/// Returns queries that are decoded and encoded again.
pub fn judged_by_the_service(bearer: &str) -> Vec<Vec<u8>> {
    QUERIES
        .map(|(query, _)| with_key(bearer, &of_history(query), HOST))
        .to_vec()
}

#[tokio::test]
async fn a_query_that_cannot_be_decoded_is_refused_before_anybody_asks_for_a_key() {
    let gate = Gate::start().await;
    for (attack, query) in undecodable().iter().zip(UNDECODABLE) {
        let answers = all_answers(&gate, attack).await;
        assert_eq!(answers, [refusal("invalid_query")], "{query}");
    }
}

#[tokio::test]
async fn the_service_gets_known_parameters_encoded_anew_and_nothing_slips_into_its_request() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for (served_before, request) in (0..).zip(judged_by_the_service(&bearer)) {
        let answers = all_answers(&gate, &request).await;
        assert_eq!(answers, [served(119 - served_before)]);
    }
    for (seen, (_, query)) in gate.service.seen().iter().zip(QUERIES) {
        assert_eq!(seen.line, of_history(query));
    }
}

#[tokio::test]
async fn a_parameter_that_the_path_does_not_have_is_refused_and_the_service_is_not_asked() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    for method in ["GET", "HEAD"] {
        for query in UNKNOWN {
            let target = format!("/api/v1/hydrorisk?{query}");
            let bearer = [("Authorization", key.bearer())];
            let bearer = bearer
                .each_ref()
                .map(|(name, value)| (*name, value.as_str()));
            let answer = gate.request(method, &target, &bearer).await;
            assert_eq!(answer.status, 400, "{method} {query}");
        }
    }
    let description = "/api/v1/openapi.json?v=1";
    let head = gate.request("HEAD", description, &[]).await;
    assert_eq!(head.status, 400);
    for (target, parameter, detail) in [
        (
            "/api/v1/stress?dept[]=34",
            json!("dept[]"),
            "There is no such parameter here; dept may be meant. Parameters: dept, format.",
        ),
        (
            "/api/v1/conformite?page=2",
            json!("page"),
            "There is no such parameter here: leave it out. \
             Parameters: limit, offset, cursor, changedSince, format.",
        ),
        (
            "/api/v1/sources?dept=34",
            json!("dept"),
            "This path has no parameters: leave it out.",
        ),
        (
            description,
            json!("v"),
            "This path has no parameters: leave it out.",
        ),
        // As long as a key may be.
        (
            "/api/v1/sources?aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            Value::Null,
            "This path has no parameters: leave it out.",
        ),
    ] {
        let body = gate.get(target, &key).await.json().unwrap();
        let told = (&body["code"], &body["parameter"], &body["detail"]);
        let code = json!("invalid_parameter");
        assert_eq!(told, (&code, &parameter, &json!(detail)), "{target}");
    }
    assert_eq!(gate.service.seen().len(), 0);
}
