//! Methods and expectations that the API does not support.

use water_kit::Gate;

use super::{HOST, LINE, request, with_key};
use crate::whole::{all_answers, refusal, served};

const LINES: [&str; 11] = [
    "CONNECT water:80 HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "OPTIONS /api/v1/stress HTTP/1.1",
    "TRACE /api/v1/stress HTTP/1.1",
    "POST /api/v1/stress HTTP/1.1",
    "PUT /api/v1/stress HTTP/1.1",
    "PATCH /unknown HTTP/1.1",
    "DELETE /api/v1/stress HTTP/1.1",
    "get /api/v1/stress HTTP/1.1",
    "GETT /api/v1/stress HTTP/1.1",
    "PROPFIND / HTTP/1.1",
];

/// Returns all methods but GET and HEAD; an answered TRACE would show the second field.
pub fn other_methods(bearer: &str) -> Vec<Vec<u8>> {
    let fields = format!("{HOST}X-Planted: echo\r\n");
    LINES.map(|line| with_key(bearer, line, &fields)).to_vec()
}

/// Returns the only expectation that exists, and others.
pub fn expectations(bearer: &str) -> Vec<Vec<u8>> {
    [
        "100-continue",
        "100-CONTINUE",
        "200-ok",
        "",
        "100-continue, x",
    ]
    .map(|expectation| with_key(bearer, LINE, &format!("{HOST}Expect: {expectation}\r\n")))
    .to_vec()
}

#[tokio::test]
async fn any_other_method_is_405_with_a_key_and_401_without() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for (attack, line) in other_methods(&bearer).iter().zip(LINES) {
        let answers = all_answers(&gate, attack).await;
        assert_eq!(answers, [refusal("method_not_allowed")], "{line}");
        let answers = all_answers(&gate, request(line, HOST)).await;
        assert_eq!(answers, [refusal("missing_credentials")], "{line}");
    }
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn a_refused_head_has_the_head_of_the_refusal_and_no_body() {
    let gate = Gate::start().await;
    let answers = all_answers(&gate, request("HEAD /api/v1/stress HTTP/1.1", HOST)).await;
    assert_eq!(answers, [refusal("missing_credentials").without_body()]);
}

#[tokio::test]
async fn the_one_expectation_is_100_continue_and_needs_no_interim_answer() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let requests = expectations(&bearer);
    let (met, others) = requests.split_at(2);
    assert_eq!(all_answers(&gate, &met[0]).await, [served(119)]);
    assert_eq!(all_answers(&gate, &met[1]).await, [served(118)]);
    for other in others {
        let answers = all_answers(&gate, other).await;
        assert_eq!(answers, [refusal("expectation_failed")]);
    }
}
