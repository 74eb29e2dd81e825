//! Too many fields, too long a head, too long a target.

use water_kit::Gate;

use super::{HOST, LINE, with_key};
use crate::whole::{Whole, all_answers, refusal, served, unread};

fn fields(count: usize) -> String {
    // `Authorization` and `Host` are two of them.
    HOST.to_owned() + &"X-A: b\r\n".repeat(count - 2)
}

fn asking(query: &str) -> String {
    format!("GET /api/v1/stress?{query} HTTP/1.1")
}

fn cases(bearer: &str) -> Vec<(Vec<u8>, Whole)> {
    let large = |kib: usize| format!("{HOST}X-A: {}\r\n", "b".repeat(kib * 1024));
    let large_head = || refusal("headers_too_large");
    let too_large = || unread("431 Request Header Fields Too Large");
    let long_target = || refusal("uri_too_long");
    vec![
        (with_key(bearer, LINE, &fields(65)), large_head()),
        (with_key(bearer, LINE, &fields(101)), too_large()),
        (with_key(bearer, LINE, &large(17)), large_head()),
        (with_key(bearer, LINE, &large(33)), too_large()),
        (
            with_key(bearer, &asking(&"x".repeat(3 * 1024)), HOST),
            long_target(),
        ),
        (
            with_key(bearer, &asking(&"&".repeat(10_000)), HOST),
            long_target(),
        ),
        (
            with_key(bearer, &asking(&"x".repeat(33 * 1024)), HOST),
            too_large(),
        ),
    ]
}

/// Returns requests that are too large, in each way.
pub fn too_large(bearer: &str) -> Vec<Vec<u8>> {
    cases(bearer).into_iter().map(|(bytes, _)| bytes).collect()
}

#[tokio::test]
async fn too_much_is_refused_by_what_is_too_much() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for (attack, answer) in cases(&bearer) {
        assert_eq!(all_answers(&gate, &attack).await, [answer]);
    }
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn what_just_fits_is_served() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let longest = format!("_={}", "x".repeat(2048 - "/api/v1/stress?_=".len()));
    for (served_before, request) in [
        with_key(&bearer, LINE, &fields(64)),
        with_key(&bearer, &asking(&longest), HOST),
    ]
    .into_iter()
    .enumerate()
    {
        let answers = all_answers(&gate, &request).await;
        assert_eq!(answers, [served(119 - served_before as u32)]);
    }
}
