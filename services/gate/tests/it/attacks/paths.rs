//! Paths that another party on the way could read as one of ours.

use water_kit::Gate;

use super::{HOST, LINE, request, with_key};
use crate::whole::{all_answers, refusal, served, unread};

const PATHS: [&str; 22] = [
    "/",
    "/api/v1",
    "/api/v1/",
    "/api/v1/unknown",
    "/api/v1/stress/",
    "//api/v1/stress",
    "/api//v1/stress",
    "/./api/v1/stress",
    "/api/v1/./stress",
    "/api/v1/x/../stress",
    "/../api/v1/stress",
    "/api/v1/%2e%2e/v1/stress",
    "/api/v1%2fstress",
    "/api/v1/%73tress",
    "/api/v1/stress%00",
    "/api/v1\\stress",
    "/api/v1/stress;x=1",
    "/API/v1/stress",
    "/api/v1/Stress",
    "/api/v1/stre\u{df}",
    "/api/v1/stress.json",
    "/api/v1/openapi.json/",
];

fn line(path: &str) -> String {
    format!("GET {path} HTTP/1.1")
}

/// Returns requests for all of them, with a valid key.
pub fn unknown(bearer: &str) -> Vec<Vec<u8>> {
    PATHS
        .map(|path| with_key(bearer, &line(path), HOST))
        .to_vec()
}

#[tokio::test]
async fn only_the_exact_paths_exist() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for (attack, path) in unknown(&bearer).iter().zip(PATHS) {
        let answers = all_answers(&gate, attack).await;
        assert_eq!(answers, [refusal("not_found")], "{path}");
        let answers = all_answers(&gate, request(&line(path), HOST)).await;
        assert_eq!(answers, [refusal("missing_credentials")], "{path}");
    }
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn a_path_that_is_no_utf_8_is_not_read() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let attack = with_key(&bearer, &line("/api/v1/stress!"), HOST);
    let attack: Vec<u8> = attack
        .into_iter()
        .map(|byte| if byte == b'!' { 0xff } else { byte })
        .collect();
    assert_eq!(
        all_answers(&gate, &attack).await,
        [unread("400 Bad Request")]
    );
}

/// Returns targets with a fragment, which no target has: a key or any length could hide behind it.
pub fn fragments(bearer: &str) -> Vec<Vec<u8>> {
    let long = format!("/api/v1/stress#{}", "x".repeat(20 * 1024));
    let targets = [
        "/api/v1/stress#",
        "/api/v1/stress#/../x",
        "/api/v1/stress?dept=34#x",
        "/api/v1/stress#?api_key=x",
        "http://water/api/v1/stress#x",
        "#",
        &long,
    ];
    targets
        .map(|target| with_key(bearer, &line(target), HOST))
        .to_vec()
}

#[tokio::test]
async fn a_target_with_a_fragment_is_not_read_and_nothing_after_it() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let good = with_key(&bearer, LINE, &format!("Referer: /a b#c\r\n{HOST}"));
    for (served_before, attack) in (0..).zip(fragments(&bearer)) {
        let pipelined = [good.clone(), attack, good.clone()].concat();
        let answers = all_answers(&gate, pipelined).await;
        let expected = [served(119 - served_before), unread("400 Bad Request")];
        assert_eq!(answers, expected);
    }
}
