//! What a service answers that no client may see.

use std::time::Duration;

use tokio::time::Instant;

use super::{HOST, with_key};
use crate::recorder::{Behaviour, ok, with};
use crate::site::Site;
use crate::whole::{Whole, refusal, served};

const LINE: &str = "GET /api/v1/hydrorisk HTTP/1.1";
const JSON: &str = "content-type: application/json\r\n";

/// The whole answer when the service behaves like this, and how long it took.
async fn answered(behaviour: Behaviour) -> (Vec<Whole>, Duration) {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    site.service.behave(behaviour);
    let begun = Instant::now();
    let answers = site.answers(with_key(&bearer, LINE, HOST)).await;
    (answers, begun.elapsed())
}

fn unavailable() -> Whole {
    refusal("upstream_unavailable").charged(119)
}

#[tokio::test]
async fn a_service_that_refuses_the_gate_is_our_bug() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let fields = "content-type: application/problem+json\r\nwww-authenticate: Basic\r\n";
        let refused = with(status, fields, r#"{"secret":"internal"}"#);
        let (answers, _) = answered(Behaviour::Answer(refused)).await;
        assert_eq!(answers, [refusal("internal").charged(119)], "{status}");
    }
}

#[tokio::test]
async fn fields_that_are_not_on_the_list_are_dropped() {
    let fields = concat!(
        "content-type: application/json\r\netag: \"abc\"\r\n",
        "cache-control: private, no-cache\r\nlink: </api/v1/hydrorisk>; rel=\"first\"\r\n",
        "set-cookie: a=b\r\nserver: secret/1.0\r\nconnection: keep-alive, x-internal\r\n",
        "x-internal: 1\r\nkeep-alive: timeout=5\r\nupgrade: h2c\r\ntrailer: x\r\n",
        "proxy-authenticate: Basic\r\nproxy-connection: close\r\nte: trailers\r\n",
        "ratelimit: \"mine\";r=1\r\nratelimit-policy: \"mine\";q=1\r\nx-ratelimit-limit: 7\r\n",
        "x-ratelimit-remaining: 7\r\nx-ratelimit-reset: 7\r\nx-request-id: not-yours\r\n",
        "vary: Cookie\r\nwww-authenticate: Basic\r\naccess-control-allow-origin: *\r\n",
        "date: Thu, 01 Jan 1970 00:00:00 GMT\r\nstrict-transport-security: max-age=1\r\n",
        "location: /\r\nx-water-identity: v1\r\nx-content-type-options: none\r\n",
    );
    let (answers, _) = answered(Behaviour::Answer(with("200 OK", fields, "{}"))).await;
    let passed = served(119)
        .with("etag: \"abc\"")
        .with("cache-control: private, no-cache")
        .with("link: </api/v1/hydrorisk>; rel=\"first\"");
    assert_eq!(answers, [passed]);
}

#[tokio::test]
async fn what_is_no_answer_of_the_contract_is_503() {
    let head = format!("HTTP/1.1 200 OK\r\n{JSON}");
    for wrong in [
        ok("text/html", "<p>hello"),
        with("200 OK", "", "{}"),
        with("201 Created", JSON, "{}"),
        with("206 Partial Content", JSON, "{}"),
        with("302 Found", "location: /\r\n", ""),
        with("418 I'm a teapot", JSON, "{}"),
        with("500 Internal Server Error", JSON, "{}"),
        format!("{head}content-length: 9\r\n\r\n{{"),
        format!("{head}transfer-encoding: chunked\r\n\r\n9\r\n{{"),
        format!("{head}transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n\r\n\r\n"),
        format!("{head}transfer-encoding: chunked\r\n\r\n2;a\nb\r\n{{}}\r\n0\r\n\r\n"),
        format!("{head}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"),
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n".into(),
        "HTTP/1.1 200".into(),
        "not HTTP at all\r\n\r\n".into(),
        String::new(),
    ] {
        let (answers, _) = answered(Behaviour::AnswerAndClose(wrong.clone())).await;
        assert_eq!(answers, [unavailable()], "{wrong}");
    }
}

#[tokio::test]
async fn an_answer_of_2_mib_is_503_whether_its_length_is_told_or_not() {
    let large = "x".repeat(2 * 1024 * 1024);
    let chunks = format!("100000\r\n{}\r\n", "x".repeat(1024 * 1024)).repeat(2);
    let chunked =
        format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n");
    for large in [ok("application/json", &large), chunked] {
        let (answers, _) = answered(Behaviour::AnswerAndClose(large)).await;
        assert_eq!(answers, [unavailable()]);
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_or_never_ends_is_503_at_the_deadline() {
    let trickling = Behaviour::Trickle(format!(
        "HTTP/1.1 200 OK\r\n{JSON}content-length: 1000000\r\n\r\n"
    ));
    for behaviour in [Behaviour::Silence, trickling] {
        let (answers, took) = answered(behaviour).await;
        assert_eq!(answers, [unavailable()]);
        let deadline = Duration::from_secs(5);
        assert!(took >= deadline && took < 2 * deadline, "{took:?}");
    }
}
