//! Problems as a client sees them: body and headers.

use http::StatusCode;
use serde_json::{Value, json};

use super::*;
use crate::RequestIds;

#[derive(Debug, thiserror::Error)]
#[error("cannot read the page")]
struct Store {
    transient: bool,
    #[source]
    source: std::io::Error,
}

impl Fault for Store {
    fn is_transient(&self) -> bool {
        self.transient
    }
}

fn store(transient: bool) -> Store {
    Store {
        transient,
        source: std::io::Error::other("password hunter2 refused"),
    }
}

fn render(problem: Problem) -> (Response<()>, Value) {
    let response: Response<Vec<u8>> = problem.into_response(&RequestIds::new(7).mint());
    let (parts, body) = response.into_parts();
    (
        Response::from_parts(parts, ()),
        serde_json::from_slice(&body).unwrap(),
    )
}

#[test]
fn a_problem_is_an_object_of_rfc_9457_with_our_fields() {
    let problem = Problem::invalid_parameter("limit", "limit must be a whole number.");
    let response: Response<Vec<u8>> = problem.into_response(&RequestIds::new(7).mint());
    let expected = concat!(
        r#"{"type":"urn:waterdata:problem:invalid_parameter","title":"A parameter is malformed","#,
        r#""status":400,"detail":"limit must be a whole number.","code":"invalid_parameter","#,
        r#""requestId":"0000000000000007-0","parameter":"limit"}"#
    );
    assert_eq!(String::from_utf8_lossy(response.body()), expected);
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    assert_eq!(
        response.headers()["content-length"],
        expected.len().to_string()
    );
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(response.headers()["x-request-id"], "0000000000000007-0");
}

#[test]
fn every_401_and_403_says_how_to_authenticate() {
    let challenge = |problem: Problem| {
        let (response, _) = render(problem);
        response.headers()["www-authenticate"]
            .to_str()
            .unwrap()
            .to_owned()
    };
    let with = |error: &str| format!("Bearer realm=\"water-data\", error=\"{error}\"");
    assert_eq!(
        challenge(Problem::missing_credentials()),
        "Bearer realm=\"water-data\""
    );
    assert_eq!(challenge(Problem::invalid_key()), with("invalid_token"));
    assert_eq!(challenge(Problem::key_expired()), with("invalid_token"));
    assert_eq!(challenge(Problem::key_suspended()), with("invalid_token"));
    assert_eq!(
        challenge(Problem::key_not_yet_valid()),
        with("invalid_token")
    );
    assert_eq!(
        challenge(Problem::invalid_request()),
        with("invalid_request")
    );
    assert_eq!(
        challenge(Problem::plan_insufficient()),
        with("insufficient_scope")
    );
}

#[test]
fn a_429_names_the_windows_and_when_to_come_back() {
    let (response, body) = render(Problem::rate_limited(&["minute", "day"], 17));
    assert_eq!(response.headers()["retry-after"], "17");
    assert_eq!(body["violatedPolicies"], json!(["minute", "day"]));
    let (_, body) = render(Problem::too_many_failures(2));
    assert_eq!(body["code"], "rate_limited");
    assert_eq!(body.get("violatedPolicies"), None);
}

#[test]
fn a_405_says_what_is_allowed() {
    let (response, _) = render(Problem::method_not_allowed());
    assert_eq!(response.headers()["allow"], "GET, HEAD");
}

#[test]
fn a_stores_failure_is_503_if_it_may_pass_and_500_if_not_and_never_shown() {
    for (transient, status, code) in [
        (true, 503, "dependency_unavailable"),
        (false, 500, "internal"),
    ] {
        let (response, body) = render(Problem::from(store(transient)));
        assert_eq!(
            (response.status().as_u16(), &body["code"]),
            (status, &json!(code))
        );
        assert_eq!(response.headers().contains_key("retry-after"), transient);
        assert!(!body.to_string().contains("hunter2"));
    }
}

#[test]
fn codes_are_distinct_and_their_types_are_named_after_them() {
    let mut seen: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), Code::ALL.len());
    for code in Code::ALL {
        assert_eq!(
            code.type_uri(),
            format!("urn:waterdata:problem:{}", code.as_str())
        );
        assert!(code.status().is_client_error() || code.status().is_server_error());
    }
}
