//! End of a request: ambiguous framing is refused, and the bytes after it are not parsed.

use anyhow::ensure;
use water_harness::wait_until;
use water_kit::{Gate, SOON};

use super::{HOST, LINE, request, with_key};
use crate::whole::{all_answers, refusal, served, unread};

/// Returns GETs with a body, announced in every way, with a second request in it.
pub fn bodies(bearer: &str) -> Vec<Vec<u8>> {
    let hidden = with_key(bearer, "GET /api/v1/risque HTTP/1.1", HOST);
    let length = format!("Content-Length: {}\r\n", hidden.len());
    let announcements = [
        length.as_str(),
        "Content-Length: 1\r\n",
        "Content-Length: 4\r\nContent-Length: 4\r\n",
        "Content-Length: 00\r\n",
        "Transfer-Encoding: chunked\r\n",
        "transfer-encoding: CHUNKED\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Expect: 100-continue\r\nContent-Length: 4\r\n",
    ];
    let body = |fields: &str| [with_key(bearer, LINE, fields), hidden.clone()].concat();
    announcements
        .map(|announcement| body(&format!("{HOST}{announcement}")))
        .to_vec()
}

/// Returns requests that the parser refuses, each followed by a good request.
pub fn unreadable(bearer: &str) -> Vec<Vec<u8>> {
    let fields = [
        "Host: water\r\nContent-Length: 4\r\nContent-Length: 5\r\n",
        "Host: water\r\nContent-Length: 4, 5\r\n",
        "Host: water\r\nContent-Length: +5\r\n",
        "Host: water\r\nContent-Length: -1\r\n",
        "Host: water\r\nContent-Length: 0x5\r\n",
        "Host: water\r\nContent-Length: 99999999999999999999\r\n",
        "Host: water\r\nTransfer-Encoding: identity\r\n",
        "Host: water\r\nTransfer-Encoding: chunked, identity\r\n",
        "Host: water\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Host: water\r\nTransfer-Encoding: xchunked\r\n",
        "Host : water\r\n",
        "Host: water\r\nTransfer-Encoding : chunked\r\n",
        "Host: water\r\nX: a\r\n folded\r\n",
        "Host: water\r\n X: folded\r\n",
        "Host: water\r\nX: a\0b\r\n",
        "Host: water\r\nX\0: a\r\n",
        "Host: water\r\nX: a\rb\r\n",
        "Host: water\r\nX: a\r\r\n",
        "Host: water\r\n: no name\r\n",
        "Host: water\r\nno colon\r\n",
        "Host: water\r\nX(): a\r\n",
    ];
    let lines = [
        "GET /api/v1/stress HTTP/1.2",
        "GET /api/v1/stress HTTP/2.0",
        "GET /api/v1/stress http/1.1",
        "GET  /api/v1/stress HTTP/1.1",
        "GET /api/v1/stress  HTTP/1.1",
        "GET /api/v1/ stress HTTP/1.1",
        "GET /api/v1/stress",
        "GET api/v1/stress HTTP/1.1",
        "GET /api/v1/str\0ess HTTP/1.1",
        "GET /api/v1/str\ress HTTP/1.1",
        " GET /api/v1/stress HTTP/1.1",
        "G(T /api/v1/stress HTTP/1.1",
    ];
    let chunked_in_1_0 = with_key(
        bearer,
        "GET /api/v1/stress HTTP/1.0",
        "Transfer-Encoding: chunked\r\n",
    );
    let wrong = fields.iter().map(|fields| with_key(bearer, LINE, fields));
    let wrong = wrong.chain(lines.iter().map(|line| with_key(bearer, line, HOST)));
    let good = with_key(bearer, LINE, HOST);
    wrong
        .chain([chunked_in_1_0])
        .map(|wrong| [wrong, good.clone()].concat())
        .collect()
}

#[tokio::test]
async fn a_body_on_a_get_is_refused_and_a_request_in_it_is_never_seen() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for attack in bodies(&bearer) {
        let answers = all_answers(&gate, &attack).await;
        let text = String::from_utf8_lossy(&attack);
        assert_eq!(answers, [refusal("body_not_allowed")], "{text}");
    }
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn what_the_parser_cannot_read_is_an_empty_400_counted_and_logged_without_its_text() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let attacks = unreadable(&bearer);
    for attack in &attacks {
        let answers = all_answers(&gate, attack).await;
        let text = String::from_utf8_lossy(attack);
        assert_eq!(answers, [unread("400 Bad Request")], "{text:?}");
    }
    assert_eq!(gate.service.seen().len(), 0);
    let count = attacks.len();
    let counted = format!("water_connections_closed_total{{reason=\"unreadable\"}} {count}\n");
    gate.shows(&[&counted]).await;
    let logged = async || {
        let log = gate.process.log();
        let lines = log.matches("refused what is no request").count();
        ensure!(lines == count, "{lines} lines of {count}");
        Ok(log)
    };
    let log = wait_until("a line for each", SOON, logged).await.unwrap();
    assert!(!log.contains("X()") && !log.contains("G(T") && !log.contains(&bearer));
}

#[tokio::test]
async fn a_request_in_the_body_of_a_post_is_never_seen() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let hidden = with_key(&bearer, LINE, HOST);
    let announced = format!("{HOST}Content-Length: {}\r\n", hidden.len());
    let post = |fields: &str| request("POST /api/v1/stress HTTP/1.1", fields);
    let with = post(&format!("Authorization: {bearer}\r\n{announced}"));
    let answers = all_answers(&gate, [with, hidden.clone()].concat()).await;
    assert_eq!(answers, [refusal("method_not_allowed")]);
    let answers = all_answers(&gate, [post(&announced), hidden].concat()).await;
    assert_eq!(answers, [refusal("missing_credentials")]);
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn a_length_of_zero_is_no_body() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let zero = with_key(&bearer, LINE, &format!("{HOST}Content-Length: 0\r\n"));
    let two = [zero.clone(), zero].concat();
    assert_eq!(all_answers(&gate, two).await, [served(119), served(118)]);
}
