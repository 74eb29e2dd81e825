//! Requests that no browser of ours sends.

use water_harness::Answer;
use water_kit::portal::OWN;

use crate::running::Running;

/// Text of a key's shape.
const KEY: &str = "wdk_qOPFYxx1NsBs_SKofICTAwwUNGxvweG8uyLAqy1Ax7ikF4Ye9fW8GXnk1Fv4sp";

/// Header fields of a request.
type Fields<'a> = &'a [(&'a str, &'a str)];

fn code(answer: &Answer) -> (u16, String) {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    (
        answer.status,
        body["code"].as_str().unwrap_or_default().to_owned(),
    )
}

#[tokio::test]
async fn a_key_is_refused_wherever_it_stands_and_never_repeated() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    let bearer = format!("Bearer {KEY}");
    let requests: [(&str, String, Fields, &str); 6] = [
        ("GET", format!("/docs/{KEY}"), &[], ""),
        ("GET", format!("/%77dk{}", &KEY[3..]), &[], ""),
        ("GET", format!("/docs?key={KEY}"), &[], ""),
        (
            "GET",
            "/account/v1/session".to_owned(),
            &[("Authorization", &bearer)],
            "",
        ),
        (
            "POST",
            "/account/v1/accounts/acme/keys".to_owned(),
            &[OWN],
            KEY,
        ),
        ("GET", format!("/auth/sign-in?to=/docs%3F{KEY}"), &[], ""),
    ];
    for (method, target, fields, body) in requests {
        let answer = anna.ask(method, &target, fields, body).await;
        assert_eq!(
            code(&answer),
            (400, "key_in_request".to_owned()),
            "{method} {target}"
        );
        assert!(!format!("{answer:?}").contains(&KEY[4..16]));
    }
}

#[tokio::test]
async fn changes_from_another_origin_are_refused_before_the_session_is_looked_at() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    for method in ["POST", "PATCH", "DELETE", "PUT"] {
        for fields in [
            &[][..],
            &[("Sec-Fetch-Site", "cross-site")],
            &[("Origin", "null")],
        ] {
            let target = "/account/v1/accounts/acme/keys";
            let answer = anna.ask(method, target, fields, "{}").await;
            assert_eq!(
                code(&answer),
                (403, "cross_origin".to_owned()),
                "{method} {fields:?}"
            );
        }
    }
}

#[tokio::test]
async fn methods_sizes_and_framing_are_judged_as_at_the_gate() {
    let portal = Running::start().await;
    let long = format!("/docs?{}", "a".repeat(2048));
    let rows: [(&str, &str, Fields, u16, &str); 12] = [
        ("POST", "/docs", &[], 405, "method_not_allowed"),
        ("POST", "/auth/sign-in", &[], 405, "method_not_allowed"),
        ("GET", "/auth/sign-out", &[], 405, "method_not_allowed"),
        ("GET", "/auth/back-channel", &[], 405, "method_not_allowed"),
        ("GET", &long, &[], 414, "uri_too_long"),
        (
            "GET",
            "/docs",
            &[("Transfer-Encoding", "chunked")],
            400,
            "body_not_allowed",
        ),
        (
            "GET",
            "/docs",
            &[("Expect", "200-ok")],
            417,
            "expectation_failed",
        ),
        ("GET", "/docs?a=%zz", &[], 400, "invalid_query"),
        (
            "GET",
            "/account/v1/session?x=1",
            &[],
            400,
            "invalid_parameter",
        ),
        (
            "POST",
            "/auth/sign-out?x=1",
            &[OWN],
            400,
            "invalid_parameter",
        ),
        ("GET", "/docs?fbclid=a", &[], 200, ""),
        ("GET", "/nothing", &[], 404, "not_found"),
    ];
    for (method, target, fields, status, reason) in rows {
        let answer = portal.browser().ask(method, target, fields, "").await;
        assert_eq!(
            code(&answer),
            (status, reason.to_owned()),
            "{method} {target:.20}"
        );
    }
    let large = "a".repeat(4097);
    let mut browser = portal.browser();
    let keys = "/account/v1/accounts/acme/keys";
    let answer = browser.ask("POST", keys, &[OWN], &large).await;
    assert_eq!(code(&answer), (413, "body_too_large".to_owned()));
}

#[tokio::test]
async fn the_callback_takes_a_code_of_eight_kilobytes() {
    let portal = Running::start().await;
    let mut browser = portal.browser();
    let begun = browser.begin("/").await;
    let code = "a".repeat(8000);
    let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
    portal.provider.give(&code, &token);
    assert_eq!(browser.back(&begun.state, &code).await.status, 303);
    assert_eq!(
        browser.back(&begun.state, &"a".repeat(9000)).await.status,
        414
    );
}

#[tokio::test]
async fn every_answer_protects_its_reader() {
    let portal = Running::start().await;
    for target in [
        "/",
        "/nothing",
        "/account/v1/session",
        "/auth/callback",
        "/account/v1/accounts/a/keys",
    ] {
        let answer = portal.browser().get(target).await;
        for name in [
            "content-security-policy",
            "strict-transport-security",
            "x-content-type-options",
            "referrer-policy",
            "cross-origin-opener-policy",
            "cache-control",
            "x-request-id",
        ] {
            assert!(answer.header(name).is_some(), "{target}: {name}");
        }
    }
}
