//! Methods and expectations that the API does not support.

use super::{HOST, LINE, request, with_key};
use crate::site::Site;
use crate::whole::{refusal, served};

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

/// All methods but GET and HEAD; a TRACE that were answered would show the second field.
pub fn other_methods(bearer: &str) -> Vec<Vec<u8>> {
    let fields = format!("{HOST}X-Planted: echo\r\n");
    LINES.map(|line| with_key(bearer, line, &fields)).to_vec()
}

/// The one expectation that exists, and others.
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
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    for (attack, line) in other_methods(&bearer).iter().zip(LINES) {
        let answers = site.answers(attack).await;
        assert_eq!(answers, [refusal("method_not_allowed")], "{line}");
        let answers = site.answers(request(line, HOST)).await;
        assert_eq!(answers, [refusal("missing_credentials")], "{line}");
    }
    assert_eq!(site.service.seen().len(), 0);
}

#[tokio::test]
async fn a_refused_head_has_the_head_of_the_refusal_and_no_body() {
    let site = Site::start().await;
    let answers = site
        .answers(request("HEAD /api/v1/stress HTTP/1.1", HOST))
        .await;
    assert_eq!(answers, [refusal("missing_credentials").without_body()]);
}

#[tokio::test]
async fn the_one_expectation_is_100_continue_and_needs_no_interim_answer() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    let requests = expectations(&bearer);
    let (met, others) = requests.split_at(2);
    assert_eq!(site.answers(&met[0]).await, [served(119)]);
    assert_eq!(site.answers(&met[1]).await, [served(118)]);
    for other in others {
        let answers = site.answers(other).await;
        assert_eq!(answers, [refusal("expectation_failed")]);
    }
}
