//! Answers of a service that no client may see.

use water_kit::Gate;
use water_kit::gate::{Behaviour, ok, with};

use super::{HOST, with_key};
use crate::whole::{all_answers, refusal, served};

const LINE: &str = "GET /api/v1/hydrorisk HTTP/1.1";
const JSON: &str = "content-type: application/json\r\n";
const AWAY: &str = "upstream_unavailable";
const PROBLEM: &str = "content-type: application/problem+json\r\nwww-authenticate: Basic\r\n";

#[tokio::test]
async fn an_answer_outside_the_contract_is_503_and_a_refusal_of_the_gate_500() {
    let gate = Gate::start().await;
    let broken = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 9\r\n\r\n{{");
    for (answer, code) in [
        (with("401 Unauthorized", PROBLEM, "{}"), "internal"),
        (with("403 Forbidden", PROBLEM, "{}"), "internal"),
        (ok("text/html", "<p>hello"), AWAY),
        (with("200 OK", "", "{}"), AWAY),
        (with("201 Created", JSON, "{}"), AWAY),
        (with("206 Partial Content", JSON, "{}"), AWAY),
        (with("302 Found", "location: /\r\n", ""), AWAY),
        (with("418 I'm a teapot", JSON, "{}"), AWAY),
        (with("500 Oh", JSON, "{}"), AWAY),
        (broken, AWAY),
    ] {
        let bearer = gate.key().await.bearer();
        let request = with_key(&bearer, LINE, HOST);
        // A good answer between any two: five failures in a row would open the breaker.
        gate.service
            .behave(Behaviour::Answer(ok("application/json", "{}")));
        assert_eq!(all_answers(&gate, &request).await, [served(119)]);
        gate.service
            .behave(Behaviour::AnswerAndClose(answer.clone()));
        let expected = refusal(code).charged(118);
        assert_eq!(all_answers(&gate, &request).await, [expected], "{answer}");
    }
}

#[tokio::test]
async fn a_services_own_failure_is_passed_on_with_its_wait() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    let fields = "content-type: application/problem+json\r\nretry-after: 7\r\n";
    let body = r#"{"code":"of-the-service"}"#;
    for (number, status) in [
        (400, "400 Bad Request"),
        (404, "404 Not Found"),
        (500, "500 Internal Server Error"),
        (503, "503 Service Unavailable"),
    ] {
        let answer = Behaviour::Answer(with(status, fields, body));
        gate.service.behave(answer);
        let answer = gate.get("/api/v1/hydrorisk", &key).await;
        assert_eq!(answer.status, number, "{answer:?}");
        assert_eq!(answer.text().unwrap(), body);
        assert_eq!(answer.header("retry-after"), Some("7"), "{answer:?}");
    }
}

#[tokio::test]
async fn fields_that_are_not_on_the_list_are_dropped() {
    let fields = concat!(
        "content-type: application/json\r\ncontent-encoding: gzip\r\netag: \"abc\"\r\n",
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
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    gate.service
        .behave(Behaviour::Answer(with("200 OK", fields, "{}")));
    let passed = served(119)
        .with("content-encoding: gzip")
        .with("etag: \"abc\"")
        .with("cache-control: private, no-cache")
        .with("link: </api/v1/hydrorisk>; rel=\"first\"");
    let answers = all_answers(&gate, with_key(&bearer, LINE, HOST)).await;
    assert_eq!(answers, [passed]);
}
