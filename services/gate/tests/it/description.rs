//! `openapi.json` as a client gets it: without a key, and coded and cached as other answers are.

use water_kit::Gate;

const TARGET: &str = "/api/v1/openapi.json";

#[tokio::test]
async fn the_description_needs_no_key_is_coded_and_cached_and_has_a_head() {
    let gate = Gate::start().await;
    let get = gate.request("GET", TARGET, &[]).await;
    assert_eq!(get.header("content-type"), Some("application/json"));
    assert_eq!(get.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(get.header("vary"), Some("Accept-Encoding"));
    assert_eq!(get.header("accept-ranges"), Some("none"));
    assert_eq!(get.json().unwrap()["openapi"], "3.1.0");
    let head = gate.request("HEAD", TARGET, &[]).await;
    let length = get.body.len().to_string();
    assert_eq!(head.header("content-length"), Some(length.as_str()));
    assert_eq!(head.header("accept-ranges"), Some("none"));

    let brotli = ("Accept-Encoding", "br");
    let coded = gate.request("GET", TARGET, &[brotli]).await;
    assert_eq!(coded.header("content-encoding"), Some("br"));
    let known = ("If-None-Match", coded.header("etag").unwrap());
    let unchanged = gate.request("GET", TARGET, &[brotli, known]).await;
    assert_eq!(unchanged.status, 304);

    let other = gate.request("POST", TARGET, &[]).await;
    assert_eq!(other.status, 401);
}
