//! A key's text is in its requests and nowhere else: the tests search the gate's log at its most verbose level, its
//! exported spans, and all data of its Redis.

use water_harness::{Collector, Redis, find_key_text};
use water_kit::{Gate, Key, SOON};

/// Returns uses of a key by a client, with good intent or not: whole heads, up to the empty line.
fn heads(key: &str) -> Vec<String> {
    let lines = [
        format!("GET /api/v1/stress?key={key} HTTP/1.1"),
        format!("GET /api/v1/stress?dept={key} HTTP/1.1"),
        format!("GET /api/v1/stress?{key} HTTP/1.1"),
        format!("GET /api/v1/stress?a=%77{}&b=%zz HTTP/1.1", &key[1..]),
        format!("GET /{key} HTTP/1.1"),
        format!("GET /api/v1/stress/{key} HTTP/1.1"),
        format!("GET http://{key}/api/v1/stress HTTP/1.1"),
        format!("CONNECT {key}:443 HTTP/1.1"),
        format!("{key} /api/v1/stress HTTP/1.1"),
        format!("GET /api/v1/stress {key}"),
        key.to_owned(),
    ];
    let values = [
        format!("Authorization: Bearer {key}"),
        format!("Authorization: Bearer {key}0"),
        format!("Authorization: Bearer {key}, Bearer {key}"),
        format!("Authorization: Basic {key}"),
        format!("Authorization: {key}"),
        format!("Authorization: Bearer {key}\r\nAuthorization: Bearer {key}"),
        format!("Cookie: key={key}"),
        format!("X-API-Key: {key}"),
        format!("Proxy-Authorization: Bearer {key}"),
        format!("X-Request-Id: {key}"),
        format!("traceparent: {key}"),
        format!("tracestate: vendor={key}"),
        format!("Origin: https://{key}"),
        format!("User-Agent: {key}"),
        format!("X-Forwarded-For: {key}"),
        format!("Expect: {key}"),
        format!("If-None-Match: \"{key}\""),
        format!("Content-Length: {key}"),
        format!("Transfer-Encoding: {key}"),
        format!("{key}: value"),
        key.to_owned(),
    ];
    let with_line = lines
        .into_iter()
        .map(|line| format!("{line}\r\nHost: water\r\nAuthorization: Bearer {key}\r\n\r\n"));
    let with_value = values
        .into_iter()
        .map(|value| format!("GET /api/v1/stress HTTP/1.1\r\nHost: water\r\n{value}\r\n\r\n"));
    let host = format!("GET / HTTP/1.1\r\nHost: {key}\r\n\r\n");
    with_line.chain(with_value).chain([host]).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    let mut parts = bytes.windows(text.len());
    parts.any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn neither_log_metrics_answers_spans_nor_redis_hold_a_keys_text() {
    let redis = Redis::start().await.unwrap();
    let collector = Collector::start().await.unwrap();
    let gate = Gate::builder().redis(&redis).set("WATER_LOG", "trace");
    let gate = gate.set("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint());
    let gate = gate.start().await;
    let (good, unknown) = (gate.key().await, Key::new());
    let (account, public) = (good.record.account.as_str(), good.record.key_id.as_str());
    let trace = "\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";
    for head in [&good, &unknown].map(|key| heads(&key.text)).concat() {
        for head in [&head, &head.replace("\r\n\r\n", trace)] {
            let mut client = gate.connect().await;
            client.send(head).await.unwrap();
            // An answer, or a closed connection.
            let answer = format!("{:?}", client.answer().await);
            assert_eq!(find_key_text(&answer), None, "{head}");
        }
    }
    let metrics = gate.admin("/metrics").await.unwrap();
    assert_eq!(find_key_text(&metrics.body), None);

    gate.process.stop(SOON).await.unwrap();
    let log = gate.process.log();
    // The log has the key's public part, so the search would find its text too.
    assert!(log.contains(public), "{log}");
    assert_eq!(find_key_text(&log), None);

    let spans = collector.bytes();
    assert!(holds(&spans, "/api/v1/stress"));
    assert_eq!(find_key_text(&spans), None);
    for text in [account, public] {
        assert!(!holds(&spans, text), "{text}");
    }

    let dump = redis.dump().await.unwrap();
    assert!(holds(&dump, public));
    assert_eq!(find_key_text(&dump), None);
    let planted = ["SET", "planted", &good.text];
    redis.command(&planted).await.unwrap();
    assert!(find_key_text(redis.dump().await.unwrap()).is_some());
}
