//! A request as a service receives it. Answers as a client receives them are in `attacks::answers`.

use http::HeaderMap;
use water_domain::Timestamp;
use water_http::{Identity, Verifier};
use water_kit::gate::{Behaviour, Seen};
use water_kit::{CURRENT, Gate};

const TARGET: &str = "/api/v1/hydrorisk";

/// Returns the caller's identity, as the service verifies it.
fn verified(seen: &Seen, now: Timestamp) -> Identity {
    let mut headers = HeaderMap::new();
    for value in seen.values("x-water-identity") {
        headers.append("x-water-identity", value.parse().unwrap());
    }
    let mut line = seen.line.split(' ');
    let (method, target) = (line.next().unwrap(), line.next().unwrap());
    let verifier = Verifier::new(&CURRENT.parse().unwrap(), None);
    let vouched = verifier.verify(&headers, &method.parse().unwrap(), target, now);
    vouched.unwrap().identity
}

#[tokio::test]
async fn the_service_sees_who_is_asking_what_is_on_the_list_and_nothing_else() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    let bearer = key.bearer();
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let fields = [
        ("Authorization", bearer.as_str()),
        ("Accept", "application/json"),
        ("Accept-Encoding", "br, gzip"),
        ("Accept-Language", "fr, en;q=0.5"),
        ("If-None-Match", "\"abc\""),
        ("traceparent", traceparent),
        ("tracestate", "vendor=1"),
        ("X-Request-Id", "my-request-1"),
        ("X-Water-Identity", "v1;account=other"),
        ("x_water_identity", "v1;account=other"),
        ("X-WATER-IDENTITY", "v1;account=other"),
        ("Forwarded", "for=192.0.2.1"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Forwarded-Host", "evil"),
        ("X-Original-URL", "/api/v1/conformite"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("Connection", "x-water-identity, authorization"),
        ("Cookie", "a=b"),
        ("User-Agent", "curl"),
    ];
    let answer = gate
        .request("GET", "/api/v1/hydrorisk?limit=5", &fields)
        .await;
    assert_eq!(answer.status, 200);
    let seen = gate.service.only();
    let names = [
        "accept",
        "accept-encoding",
        "accept-language",
        "host",
        "if-none-match",
        "traceparent",
        "tracestate",
        "x-request-id",
        "x-water-identity",
    ];
    assert_eq!(seen.names(), names);
    assert_eq!(seen.values("traceparent"), [traceparent]);
    assert_eq!(seen.values("accept-language"), ["fr, en;q=0.5"]);
    assert_eq!(seen.values("x-request-id"), ["my-request-1"]);
    let identity = verified(&seen, gate.directory.leases().await.unwrap().now);
    assert_eq!(identity.account, key.record.account);
    assert_eq!(identity.key, key.record.key_id);
    assert_eq!(identity.plan, key.record.plan);
}

#[tokio::test]
async fn a_malformed_trace_context_goes_no_further() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let fields = [
        ("Authorization", bearer.as_str()),
        ("traceparent", "00-1-2-01"),
        ("tracestate", "vendor=1"),
    ];
    assert_eq!(gate.request("GET", TARGET, &fields).await.status, 200);
    let seen = gate.service.only();
    assert!(seen.values("traceparent").is_empty(), "{seen:?}");
    assert!(seen.values("tracestate").is_empty(), "{seen:?}");
}

#[tokio::test]
async fn a_head_is_asked_as_a_head_and_keeps_its_length_and_304_has_no_body() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4711\r\n\r\n";
    gate.service.behave(Behaviour::Answer(head.into()));
    let fields = [("Authorization", bearer.as_str())];
    let mut client = gate.connect().await;
    for _ in 0..2 {
        let answer = client.request("HEAD", TARGET, &fields).await.unwrap();
        let length = answer.header("content-length");
        assert_eq!((answer.status, length), (200, Some("4711")));
    }
    let unchanged = "HTTP/1.1 304 Not Modified\r\netag: \"abc\"\r\n\r\n";
    gate.service.behave(Behaviour::Answer(unchanged.into()));
    let answer = client.request("GET", TARGET, &fields).await.unwrap();
    assert_eq!(
        (answer.status, answer.header("etag")),
        (304, Some("\"abc\""))
    );
    assert!(answer.header("ratelimit").is_some() && answer.body.is_empty());
    let seen = gate.service.seen();
    assert_eq!(seen[1].line, format!("HEAD {TARGET} HTTP/1.1"));
    assert!(
        seen.iter().all(|seen| seen.connection == 0),
        "it is used again"
    );
}
