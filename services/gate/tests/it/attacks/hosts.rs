//! Host of a request: one authority, the same in `Host` and target.

use water_kit::Gate;

use super::{HOST, LINE, with_key};
use crate::whole::{all_answers, refusal, served};

/// Returns requests with no authority, several, one that contradicts the target, or a malformed one.
pub fn wrong(bearer: &str) -> Vec<Vec<u8>> {
    let cases = [
        (LINE, ""),
        (LINE, "Host: water\r\nHost: water\r\n"),
        (LINE, "Host: water\r\nHost: evil\r\n"),
        (LINE, "Host:\r\n"),
        (LINE, "Host: water, evil\r\n"),
        (LINE, "Host: water evil\r\n"),
        (LINE, "Host: water/api\r\n"),
        (LINE, "Host: user@water\r\n"),
        (LINE, "Host: w\u{e4}ter\r\n"),
        ("GET http://evil/api/v1/stress HTTP/1.1", HOST),
        ("GET http://water:81/api/v1/stress HTTP/1.1", HOST),
        ("GET http://user@water/api/v1/stress HTTP/1.1", HOST),
        ("GET http://water/api/v1/stress HTTP/1.1", ""),
    ];
    cases
        .map(|(line, fields)| with_key(bearer, line, fields))
        .to_vec()
}

/// Returns requests with one authority, in every allowed form.
pub fn right(bearer: &str) -> Vec<Vec<u8>> {
    let cases = [
        ("GET http://water/api/v1/stress HTTP/1.1", "Host: WATER\r\n"),
        (
            "GET https://water:443/api/v1/stress HTTP/1.1",
            "Host: water:443\r\n",
        ),
        (LINE, "Host: [2001:db8::1]:8080\r\n"),
        (LINE, "Host: 192.0.2.1\r\n"),
    ];
    cases
        .map(|(line, fields)| with_key(bearer, line, fields))
        .to_vec()
}

#[tokio::test]
async fn no_host_two_or_another_than_the_targets_is_refused() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for attack in wrong(&bearer) {
        let answers = all_answers(&gate, &attack).await;
        let text = String::from_utf8_lossy(&attack);
        assert_eq!(answers, [refusal("invalid_host")], "{text}");
    }
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn an_absolute_target_with_hosts_own_authority_goes_on_in_origin_form() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for (served_before, request) in (0..).zip(right(&bearer)) {
        let answers = all_answers(&gate, &request).await;
        let text = String::from_utf8_lossy(&request);
        assert_eq!(answers, [served(119 - served_before)], "{text}");
    }
    for seen in gate.service.seen() {
        assert_eq!(seen.line, LINE);
        assert_eq!(seen.values("host"), [gate.service.address.to_string()]);
    }
}

#[tokio::test]
async fn http_1_0_needs_no_host_and_has_no_two() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let line = "GET /api/v1/stress HTTP/1.0";
    let answers = all_answers(&gate, with_key(&bearer, line, "")).await;
    assert_eq!(answers, [served(119).in_http_1_0()]);
    let two = with_key(&bearer, line, "Host: water\r\nHost: water\r\n");
    let answers = all_answers(&gate, two).await;
    assert_eq!(answers, [refusal("invalid_host").in_http_1_0()]);
}
