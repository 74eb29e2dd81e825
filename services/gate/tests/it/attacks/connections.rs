//! Connections with no request, with several, or with half of one.

use water_kit::Gate;

use super::{HOST, LINE, request, with_key};
use crate::whole::{all_answers, refusal, served, unread};

/// Beginning of HTTP/2 with prior knowledge.
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04\0\0\0\0\0";

/// Returns HTTP/2, TLS, and less than that.
pub fn strange_bytes() -> Vec<Vec<u8>> {
    [
        HTTP_2,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\0\r\n\r\n",
        b"\x80\xff\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// Returns good and bad requests in one write.
pub fn pipelined(bearer: &str) -> Vec<Vec<u8>> {
    let get = |path: &str| with_key(bearer, &format!("GET {path} HTTP/1.1"), HOST);
    let free = request("GET /api/v1/hydrorisk HTTP/1.1", HOST);
    let closing = with_key(bearer, LINE, &format!("{HOST}Connection: close\r\n"));
    vec![
        [
            get("/api/v1/stress"),
            get("/unknown"),
            free,
            get("/api/v1/risque"),
        ]
        .concat(),
        [
            get("/api/v1/stress"),
            b"\r\n".to_vec(),
            get("/api/v1/risque"),
        ]
        .concat(),
        [closing, get("/api/v1/risque")].concat(),
        [
            get("/api/v1/stress"),
            b"GET / HTTP/9\r\n\r\n".to_vec(),
            get("/api/v1/risque"),
        ]
        .concat(),
    ]
}

#[tokio::test]
async fn bytes_that_are_no_http_1_are_the_end_with_an_empty_400_at_most() {
    let gate = Gate::start().await;
    for attack in strange_bytes() {
        let answers = all_answers(&gate, &attack).await;
        // An HTTP/2 client could not read an answer of HTTP/1.1.
        let expected = if attack == HTTP_2 {
            Vec::new()
        } else {
            vec![unread("400 Bad Request")]
        };
        assert_eq!(answers, expected, "{attack:x?}");
    }
}

#[tokio::test]
async fn an_offer_to_upgrade_is_not_taken() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for offer in [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
    ] {
        let site_key = gate.key().await.bearer();
        let offering = with_key(&site_key, LINE, &format!("{HOST}{offer}"));
        let next = with_key(&bearer, "GET /unknown HTTP/1.1", HOST);
        let answers = all_answers(&gate, [offering, next].concat()).await;
        assert_eq!(answers, [served(119), refusal("not_found")], "{offer}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let gate = Gate::start().await;
    let key = gate.key().await.bearer();
    let [mixed, spaced, closing, broken] = pipelined(&key).try_into().unwrap();
    let expected = [
        served(119),
        refusal("not_found"),
        refusal("missing_credentials"),
        served(118),
    ];
    assert_eq!(all_answers(&gate, mixed).await, expected);
    assert_eq!(all_answers(&gate, spaced).await, [served(117), served(116)]);
    let last = served(115).with("connection: close");
    assert_eq!(
        all_answers(&gate, closing).await,
        [last],
        "nothing after the last"
    );
    let answers = all_answers(&gate, broken).await;
    assert_eq!(answers, [served(114), unread("400 Bad Request")]);
}

#[tokio::test]
async fn a_request_that_breaks_off_is_no_request() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let whole = with_key(&bearer, LINE, HOST);
    for length in [0, 1, 16, whole.len() - 2, whole.len() - 1] {
        let answers = all_answers(&gate, &whole[..length]).await;
        assert!(answers.is_empty(), "{length}: {answers:?}");
    }
    assert_eq!(gate.service.seen().len(), 0);
}
