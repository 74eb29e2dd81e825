//! Requests that two parties could read differently, or that are too large: raw bytes, whole answers.

use crate::site::{Site, is, problem};

/// A whole request with a good key and these further lines.
fn request(key: &str, line: &str, fields: &str) -> String {
    format!("{line}\r\nAuthorization: {key}\r\n{fields}\r\n")
}

const LINE: &str = "GET /api/v1/stress HTTP/1.1";

#[tokio::test]
async fn a_body_on_a_get_is_refused_and_the_connection_closed() {
    let site = Site::start().await;
    let key = site.key().await.bearer();
    let smuggled = "GET /api/v1/risque HTTP/1.1\r\nHost: water\r\n\r\n";
    for fields in [
        format!("Host: water\r\nContent-Length: {}\r\n", smuggled.len()),
        "Host: water\r\nTransfer-Encoding: chunked\r\n".into(),
        "Host: water\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n".into(),
        "Host: water\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n".into(),
    ] {
        let mut client = site.connect().await;
        client
            .send(request(&key, LINE, &fields) + smuggled)
            .await
            .unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(problem(&answer), is(400, "body_not_allowed"), "{fields}");
        assert_eq!(answer.header("connection"), Some("close"));
        assert_eq!(
            client.closed().await.unwrap().len(),
            0,
            "the second request is never seen"
        );
    }
    assert_eq!(site.service.seen().len(), 0);
}

#[tokio::test]
async fn what_the_parser_cannot_read_is_an_empty_400_and_closed() {
    let site = Site::start().await;
    let key = site.key().await.bearer();
    for fields in [
        "Host: water\r\nContent-Length: 4\r\nContent-Length: 5\r\n",
        "Host: water\r\nContent-Length: +5\r\n",
        "Host: water\r\nTransfer-Encoding: identity\r\n",
        "Host : water\r\n",
        "Host: water\r\nX: a\r\n folded\r\n",
        "Host: water\r\nX: a\0b\r\n",
        "Host: water\r\nX: a\rb\r\n",
    ] {
        let mut client = site.connect().await;
        client.send(request(&key, LINE, fields)).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(
            (answer.status, answer.body.len()),
            (400, 0),
            "{fields:?}: {answer:?}"
        );
        client.closed().await.unwrap();
    }
    assert_eq!(site.service.seen().len(), 0);
}

#[tokio::test]
async fn a_length_of_zero_is_no_body() {
    let site = Site::start().await;
    let key = site.key().await.bearer();
    let answer = site
        .raw(request(&key, LINE, "Host: water\r\nContent-Length: 0\r\n"))
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn there_is_one_host_and_the_target_agrees_with_it() {
    let site = Site::start().await;
    let key = site.key().await.bearer();
    for (line, fields) in [
        (LINE, ""),
        (LINE, "Host: water\r\nHost: water\r\n"),
        (LINE, "Host: water\r\nHost: evil\r\n"),
        ("GET http://evil/api/v1/stress HTTP/1.1", "Host: water\r\n"),
        (
            "GET http://water:81/api/v1/stress HTTP/1.1",
            "Host: water\r\n",
        ),
        (
            "GET /api/v1/stress HTTP/1.0",
            "Host: water\r\nHost: water\r\n",
        ),
    ] {
        let answer = site.raw(request(&key, line, fields)).await;
        assert_eq!(problem(&answer), is(400, "invalid_host"), "{line} {fields}");
    }
    for (line, fields) in [
        ("GET http://water/api/v1/stress HTTP/1.1", "Host: WATER\r\n"),
        ("GET /api/v1/stress HTTP/1.0", ""),
    ] {
        assert_eq!(
            site.raw(request(&key, line, fields)).await.status,
            200,
            "{line}"
        );
    }
}

#[tokio::test]
async fn too_much_is_refused_by_what_is_too_much() {
    let site = Site::start().await;
    let key = site.key().await.bearer();
    let host = "Host: water\r\n";
    let fields = |count: usize| host.to_owned() + &"X-A: b\r\n".repeat(count - 2);
    let many = site.raw(request(&key, LINE, &fields(65))).await;
    assert_eq!(problem(&many), is(431, "headers_too_large"));
    assert_eq!(site.raw(request(&key, LINE, &fields(64))).await.status, 200);
    let large = format!("{host}X-A: {}\r\n", "b".repeat(17 * 1024));
    let large = site.raw(request(&key, LINE, &large)).await;
    assert_eq!(problem(&large), is(431, "headers_too_large"));
    for query in ["x".repeat(3 * 1024), "&".repeat(10_000)] {
        let line = format!("GET /api/v1/stress?{query} HTTP/1.1");
        let answer = site.raw(request(&key, &line, host)).await;
        assert_eq!(problem(&answer), is(414, "uri_too_long"));
    }
}

#[tokio::test]
async fn the_one_expectation_is_100_continue() {
    let site = Site::start().await;
    let key = site.key().await.bearer();
    let met = site
        .raw(request(
            &key,
            LINE,
            "Host: water\r\nExpect: 100-continue\r\n",
        ))
        .await;
    assert_eq!(met.status, 200);
    let other = site
        .raw(request(&key, LINE, "Host: water\r\nExpect: 200-ok\r\n"))
        .await;
    assert_eq!(problem(&other), is(417, "expectation_failed"));
}

#[tokio::test]
async fn a_query_that_cannot_be_decoded_is_refused_free_of_charge_and_without_a_key() {
    let site = Site::start().await;
    for query in [
        "%", "dept=%4", "x=%zz", "a=%ff", "a=%c0%af", "dept=%00", "%ff=1",
    ] {
        let answer = site
            .request("GET", &format!("/api/v1/stress?{query}"), &[])
            .await;
        assert_eq!(problem(&answer), is(400, "invalid_query"), "{query}");
    }
}

#[tokio::test]
async fn connect_and_options_star_are_methods_like_any_other() {
    let site = Site::start().await;
    let key = site.key().await.bearer();
    for line in [
        "CONNECT water:80 HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "TRACE / HTTP/1.1",
    ] {
        let answer = site.raw(request(&key, line, "Host: water\r\n")).await;
        assert_eq!(problem(&answer), is(405, "method_not_allowed"), "{line}");
        let answer = site.raw(format!("{line}\r\nHost: water\r\n\r\n")).await;
        assert_eq!(answer.status, 401, "{line}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let site = Site::start().await;
    let key = site.key().await.bearer();
    let mut client = site.connect().await;
    let one = |path: &str| request(&key, &format!("GET {path} HTTP/1.1"), "Host: water\r\n");
    let three = one("/api/v1/stress") + &one("/unknown") + &one("/api/v1/risque");
    client.send(three).await.unwrap();
    for status in [200, 404, 200] {
        assert_eq!(client.answer().await.unwrap().status, status);
    }
}

#[tokio::test]
async fn bytes_that_are_no_http_are_refused_or_closed() {
    let site = Site::start().await;
    for bytes in [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let mut client = site.connect().await;
        client.send(bytes).await.unwrap();
        let said = client.closed().await.unwrap();
        assert!(
            said.is_empty() || said.starts_with(b"HTTP/1.1 4"),
            "{said:?}"
        );
    }
}
