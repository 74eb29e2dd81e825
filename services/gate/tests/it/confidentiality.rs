//! A key's text is in its requests and nowhere else: searched for in all that a gate says at its most
//! talkative, and in all that its Redis holds.

use water_harness::{Redis, find_key_text};

use crate::site::{Key, SOON, Site};

/// What a client may do with a key, well meant or not: whole heads, up to the empty line.
pub fn heads(key: &str) -> Vec<String> {
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

/// What the client gets, in any form: an answer, a closed connection.
pub async fn sent(site: &Site, head: &str) -> String {
    let mut client = site.connect().await;
    client.send(head).await.unwrap();
    format!("{:?}", client.answer().await)
}

#[tokio::test]
async fn neither_log_nor_metrics_answers_or_redis_hold_a_keys_text() {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_unready(&redis, &[("WATER_LOG", "trace")]).await;
    site.ready().await;
    let good = site.key().await;
    let unknown = Key::new();
    for head in [&good, &unknown].map(|key| heads(&key.text)).concat() {
        let answer = sent(&site, &head).await;
        assert_eq!(find_key_text(&answer), None, "{head}");
    }
    let metrics = site.admin("/metrics").await.unwrap();
    assert_eq!(find_key_text(&metrics.body), None);

    site.gate.stop(SOON).await.unwrap();
    let (log, public) = (site.gate.log(), good.record.key_id.as_str());
    // Where the key's public part is, its text would be seen too.
    assert!(log.contains(public), "{log}");
    assert_eq!(find_key_text(&log), None);

    let dump = redis.dump().await.unwrap();
    assert!(
        dump.windows(public.len())
            .any(|part| part == public.as_bytes())
    );
    assert_eq!(find_key_text(&dump), None);
    redis
        .command(&["SET", "planted", &good.text])
        .await
        .unwrap();
    assert!(find_key_text(redis.dump().await.unwrap()).is_some());
}
