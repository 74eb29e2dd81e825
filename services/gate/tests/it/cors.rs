//! Browsers: refused like all other clients unless their origin is listed.

use water_kit::Gate;

const ORIGIN: &str = "https://app.example.org";
const TARGET: &str = "/api/v1/stress";

fn preflight(origin: &str) -> [(&str, &str); 2] {
    let asked = ("Access-Control-Request-Method", "GET");
    [("Origin", origin), asked]
}

#[tokio::test]
async fn a_preflight_of_an_origin_that_is_not_listed_is_a_request_without_a_key() {
    for (listed, origin) in [("", ORIGIN), (ORIGIN, "https://evil.example")] {
        let gate = Gate::builder().set("WATER_CORS_ORIGINS", listed);
        let gate = gate.start().await;
        let answer = gate.request("OPTIONS", TARGET, &preflight(origin)).await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn a_listed_origin_may_ask_and_read_and_answers_vary_by_it() {
    let gate = Gate::builder().set("WATER_CORS_ORIGINS", ORIGIN);
    let gate = gate.start().await;
    let answer = gate.request("OPTIONS", TARGET, &preflight(ORIGIN)).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN));
    let methods = answer.header("access-control-allow-methods");
    assert_eq!(methods, Some("GET, HEAD"));
    let allowed = "authorization, if-none-match, x-request-id, traceparent, tracestate";
    assert_eq!(answer.header("access-control-allow-headers"), Some(allowed));
    assert_eq!(answer.header("ratelimit"), None);

    let bearer = gate.key().await.bearer();
    let fields = [("Authorization", bearer.as_str()), ("Origin", ORIGIN)];
    let answer = gate.request("GET", TARGET, &fields).await;
    let exposed = "etag, link, retry-after, ratelimit, ratelimit-policy, x-ratelimit-limit, \
                   x-ratelimit-remaining, x-ratelimit-reset, x-request-id, x-changes-token, x-total-count";
    assert_eq!(
        answer.header("access-control-expose-headers"),
        Some(exposed)
    );
    let vary: Vec<_> = answer.headers_named("vary").collect();
    assert_eq!(vary, ["Authorization, Accept, Accept-Encoding", "Origin"]);
    let refused = gate.request("GET", TARGET, &fields[1..]).await;
    let vary: Vec<_> = refused.headers_named("vary").collect();
    assert!(vary[0].ends_with(", Accept-Language"), "{vary:?}");
    assert_eq!(vary[1..], ["Origin"]);
    // A cache keeps these apart from an answer that a page may read.
    for origin in [None, Some("https://other.example")] {
        let origin = origin.map(|origin| ("Origin", origin));
        let fields: Vec<_> = fields[..1].iter().copied().chain(origin).collect();
        let answer = gate.request("GET", TARGET, &fields).await;
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(answer.headers_named("vary").last(), Some("Origin"));
    }
}
