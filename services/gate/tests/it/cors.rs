//! Browsers: refused as everybody else unless their origin is listed.

use crate::site::Site;

const ORIGIN: &str = "https://app.example.org";
const TARGET: &str = "/api/v1/stress";

const PREFLIGHT: [(&str, &str); 2] = [("Origin", ORIGIN), ("Access-Control-Request-Method", "GET")];

#[tokio::test]
async fn without_listed_origins_a_preflight_is_a_request_without_a_key() {
    let site = Site::start().await;
    let answer = site.request("OPTIONS", TARGET, &PREFLIGHT).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn a_listed_origin_is_told_what_it_may_do_free_of_charge() {
    let site = Site::start_with(&[("WATER_CORS_ORIGINS", ORIGIN)]).await;
    let answer = site.request("OPTIONS", TARGET, &PREFLIGHT).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN));
    assert_eq!(
        answer.header("access-control-allow-methods"),
        Some("GET, HEAD")
    );
    let allowed = answer.header("access-control-allow-headers").unwrap();
    assert!(allowed.starts_with("authorization, "), "{allowed}");
    assert_eq!(answer.header("ratelimit"), None);
}

#[tokio::test]
async fn an_answer_shows_a_listed_origin_its_headers_and_varies_by_origin() {
    let site = Site::start_with(&[("WATER_CORS_ORIGINS", ORIGIN)]).await;
    let bearer = site.key().await.bearer();
    let fields = [("Authorization", bearer.as_str()), ("Origin", ORIGIN)];
    let answer = site.request("GET", TARGET, &fields).await;
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(
        exposed.contains("x-request-id") && exposed.contains("ratelimit"),
        "{exposed}"
    );
    let vary: Vec<_> = answer.headers_named("vary").collect();
    assert_eq!(vary, ["Authorization, Accept, Accept-Encoding", "Origin"]);
}

#[tokio::test]
async fn another_origin_is_told_nothing() {
    let site = Site::start_with(&[("WATER_CORS_ORIGINS", ORIGIN)]).await;
    let evil = [
        ("Origin", "https://evil.example"),
        ("Access-Control-Request-Method", "GET"),
    ];
    let answer = site.request("OPTIONS", TARGET, &evil).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
