//! What a service sees of a request, and what a client sees of an answer.

use water_domain::Timestamp;
use water_harness::Answer;
use water_http::Verifier;

use crate::recorder::{Behaviour, Seen, with};
use crate::site::{IDENTITY, Site, is, problem};

const TARGET: &str = "/api/v1/hydrorisk";

async fn answered(behaviour: Behaviour) -> (Site, Answer) {
    let site = Site::start().await;
    let key = site.key().await;
    site.service.behave(behaviour);
    let answer = site.get(TARGET, &key).await;
    (site, answer)
}

/// Whom the service believes to be asking.
fn verified(seen: &Seen, now: Timestamp) -> water_http::Identity {
    let mut headers = http::HeaderMap::new();
    for value in seen.values("x-water-identity") {
        headers.append("x-water-identity", value.parse().unwrap());
    }
    let mut line = seen.line.split(' ');
    let (method, target) = (line.next().unwrap(), line.next().unwrap());
    let verifier = Verifier::new(&IDENTITY[..64].parse().unwrap(), None);
    let vouched = verifier.verify(&headers, &method.parse().unwrap(), target, now);
    vouched.unwrap().identity
}

#[tokio::test]
async fn the_service_sees_who_is_asking_signed_for_this_request() {
    let site = Site::start().await;
    let key = site.key().await;
    assert_eq!(
        site.get("/api/v1/hydrorisk?limit=5", &key).await.status,
        200
    );
    let identity = verified(
        &site.service.only(),
        site.directory.leases().await.unwrap().now,
    );
    assert_eq!(identity.account, key.record.account);
    assert_eq!(identity.key, key.record.key_id);
    assert_eq!(identity.plan, key.record.plan);
}

#[tokio::test]
async fn the_service_sees_what_is_on_the_list_and_nothing_else() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let fields = [
        ("Authorization", bearer.as_str()),
        ("Accept", "application/json"),
        ("Accept-Encoding", "br, gzip"),
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
    assert_eq!(site.request("GET", TARGET, &fields).await.status, 200);
    let seen = site.service.only();
    let names = [
        "accept",
        "accept-encoding",
        "host",
        "if-none-match",
        "traceparent",
        "tracestate",
        "x-request-id",
        "x-water-identity",
    ];
    assert_eq!(seen.names(), names);
    assert_eq!(seen.values("traceparent"), [traceparent]);
    assert_eq!(seen.values("x-request-id"), ["my-request-1"]);
    verified(&seen, site.directory.leases().await.unwrap().now);
}

#[tokio::test]
async fn a_malformed_trace_context_goes_no_further() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    let fields = [
        ("Authorization", bearer.as_str()),
        ("traceparent", "00-1-2-01"),
        ("tracestate", "vendor=1"),
    ];
    assert_eq!(site.request("GET", TARGET, &fields).await.status, 200);
    let seen = site.service.only();
    assert!(seen.values("traceparent").is_empty(), "{seen:?}");
    assert!(seen.values("tracestate").is_empty(), "{seen:?}");
}

#[tokio::test]
async fn the_service_sees_known_parameters_only_and_encoded_anew() {
    let site = Site::start().await;
    let key = site.key().await;
    for (query, forwarded) in [
        ("", ""),
        ("?", ""),
        ("?limit=5&offset=10", "?limit=5&offset=10"),
        ("?dept=34&utm=x&limit=5", "?limit=5"),
        ("?limit=%2B5", "?limit=%2B5"),
        ("?limit=+5", "?limit=%205"),
        ("?%6Cimit=5", "?limit=5"),
        ("?limit=5&limit=6", "?limit=5&limit=6"),
        ("?limit=5%26offset%3D1", "?limit=5%26offset%3D1"),
        ("?limit", "?limit="),
    ] {
        site.get(&format!("{TARGET}{query}"), &key).await;
        let line = site.service.seen().pop().unwrap().line;
        assert_eq!(line, format!("GET {TARGET}{forwarded} HTTP/1.1"), "{query}");
    }
}

#[tokio::test]
async fn a_head_is_asked_as_a_head_and_keeps_its_length() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4711\r\n\r\n";
    site.service.behave(Behaviour::Answer(head.into()));
    let fields = [("Authorization", bearer.as_str())];
    let mut client = site.connect().await;
    for _ in 0..2 {
        let answer = client.request("HEAD", TARGET, &fields).await.unwrap();
        assert_eq!(
            (answer.status, answer.header("content-length")),
            (200, Some("4711"))
        );
    }
    let seen = site.service.seen();
    assert_eq!(seen[1].line, format!("HEAD {TARGET} HTTP/1.1"));
    assert_eq!(seen[1].connection, 0, "the connection is used again");
}

#[tokio::test]
async fn unchanged_goes_through_without_a_body() {
    let head = "HTTP/1.1 304 Not Modified\r\netag: \"abc\"\r\n\r\n";
    let (_, answer) = answered(Behaviour::Answer(head.into())).await;
    assert_eq!(
        (answer.status, answer.header("etag")),
        (304, Some("\"abc\""))
    );
    assert!(answer.header("ratelimit").is_some());
}

#[tokio::test]
async fn interim_answers_are_not_passed_on_and_the_answer_after_them_is() {
    let json = "content-type: application/json\r\n";
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let answer = interim.to_owned() + &with("200 OK", json, "{}");
    let site = Site::start().await;
    let key = site.key().await;
    site.service.behave(Behaviour::Answer(answer));
    for _ in 0..2 {
        let answer = site.get(TARGET, &key).await;
        assert_eq!((answer.status, answer.header("link")), (200, None));
        assert_eq!(answer.text().unwrap(), "{}");
    }
    let connections = site.service.seen().into_iter().map(|seen| seen.connection);
    assert_eq!(connections.collect::<Vec<_>>(), [0, 0], "it is used again");
}

#[tokio::test]
async fn a_coded_body_goes_through_as_it_is() {
    let fields = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    let (_, answer) = answered(Behaviour::Answer(with("200 OK", fields, "not looked into"))).await;
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    assert_eq!(answer.text().unwrap(), "not looked into");
}

#[tokio::test]
async fn a_reused_connection_that_the_service_closed_is_replaced_once() {
    let site = Site::start().await;
    let key = site.key().await;
    assert_eq!(site.get(TARGET, &key).await.status, 200);
    site.service.behave(Behaviour::Close);
    let answer = site.get(TARGET, &key).await;
    assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
    let connections: Vec<_> = site
        .service
        .seen()
        .iter()
        .map(|seen| seen.connection)
        .collect();
    assert_eq!(
        connections,
        [0, 0, 1],
        "one retry on a new connection, and no more"
    );
}

#[tokio::test]
async fn a_draining_service_gets_no_further_request_on_its_connection() {
    let site = Site::start().await;
    let key = site.key().await;
    let fields = "content-type: application/json\r\nconnection: close\r\n";
    site.service
        .behave(Behaviour::Answer(with("200 OK", fields, "{}")));
    for _ in 0..3 {
        assert_eq!(site.get(TARGET, &key).await.status, 200);
    }
    let connections: Vec<_> = site
        .service
        .seen()
        .iter()
        .map(|seen| seen.connection)
        .collect();
    assert_eq!(connections, [0, 1, 2]);
}
