//! The order of the checks, and that only what passes all of them is charged.

use crate::site::{Key, Site, is, problem};

/// The body of the only problem that is compared byte for byte: all come from one place.
const MISSING: &str = concat!(
    r#"{"type":"urn:waterdata:problem:missing_credentials","title":"An API key is required","#,
    r#""status":401,"detail":"Send the header `Authorization: Bearer <API_KEY>`.","#,
    r#""code":"missing_credentials","requestId":"my-request-1"}"#
);

#[tokio::test]
async fn a_refusal_is_exactly_this_answer() {
    let site = Site::start().await;
    let answer = site
        .request("GET", "/api/v1/stress", &[("X-Request-Id", "my-request-1")])
        .await;
    assert_eq!(answer.text().unwrap(), MISSING);
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| name != "date")
        .collect();
    headers.sort();
    let named = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let expected = [
        ("cache-control", "no-store"),
        ("content-length", &MISSING.len().to_string()),
        ("content-type", "application/problem+json"),
        ("vary", "Authorization, Accept, Accept-Encoding"),
        ("www-authenticate", r#"Bearer realm="water-data""#),
        ("x-content-type-options", "nosniff"),
        ("x-request-id", "my-request-1"),
    ];
    assert_eq!(named.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn without_a_key_everything_is_401() {
    let site = Site::start().await;
    for method in [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE",
    ] {
        for target in ["/api/v1/stress", "/unknown", "/", "//api/v1/stress"] {
            let answer = site.request(method, target, &[]).await;
            assert_eq!(answer.status, 401, "{method} {target}");
        }
    }
}

#[tokio::test]
async fn the_plan_is_judged_before_the_method_and_the_path() {
    let site = Site::start().await;
    let free = site.publish(Key::new().on_plan("Free")).await.bearer();
    for (method, target) in [
        ("GET", "/api/v1/stress"),
        ("POST", "/api/v1/stress"),
        ("GET", "/x"),
    ] {
        let answer = site
            .request(method, target, &[("Authorization", &free)])
            .await;
        assert_eq!(
            problem(&answer),
            is(403, "plan_insufficient"),
            "{method} {target}"
        );
    }
}

#[tokio::test]
async fn the_method_is_judged_before_the_path() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"] {
        for target in ["/api/v1/stress", "/unknown"] {
            let answer = site
                .request(method, target, &[("Authorization", &bearer)])
                .await;
            assert_eq!(
                problem(&answer),
                is(405, "method_not_allowed"),
                "{method} {target}"
            );
            assert_eq!(answer.header("allow"), Some("GET, HEAD"));
        }
    }
}

#[tokio::test]
async fn what_is_refused_costs_nothing() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    let fields = [("Authorization", bearer.as_str())];
    for (method, target) in [
        ("GET", "/unknown"),
        ("POST", "/api/v1/stress"),
        ("GET", "/api/v1/stress?a=%ff"),
        ("GET", "/api/v1/openapi.json"),
    ] {
        site.request(method, target, &fields).await;
    }
    let answer = site.request("GET", "/api/v1/stress", &fields).await;
    assert!(
        answer
            .header("ratelimit")
            .unwrap()
            .starts_with(r#""minute";r=119;"#),
        "{answer:?}"
    );
}

#[tokio::test]
async fn the_description_needs_no_key_and_other_methods_on_it_do() {
    let site = Site::start().await;
    assert_eq!(
        site.request("GET", "/api/v1/openapi.json", &[])
            .await
            .status,
        200
    );
    assert_eq!(
        site.request("POST", "/api/v1/openapi.json", &[])
            .await
            .status,
        401
    );
}
