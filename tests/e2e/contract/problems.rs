//! Errors: one form for all, and what each tells.

use anyhow::{Context, Result};
use water_e2e::{Cluster, Water, ordered_fields};
use water_harness::Answer;

use super::{ENDPOINTS, assert_problem};

#[tokio::test]
async fn a_problem_has_these_fields_and_is_not_stored() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/stress?dept=x", &cluster.key().await?)
        .await?;
    let fields = [
        "type",
        "title",
        "status",
        "detail",
        "code",
        "requestId",
        "parameter",
    ];
    assert_eq!(ordered_fields(answer.text()?)?, fields);
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    Ok(())
}

#[tokio::test]
async fn a_problem_echoes_neither_key_nor_query() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    let answer = cluster
        .water
        .get("/api/v1/stress?dept=secret-query", &key)
        .await?;
    assert!(
        !format!("{answer:?}").contains("secret-query"),
        "{answer:?}"
    );
    assert!(!format!("{answer:?}").contains(&key));
    Ok(())
}

#[tokio::test]
async fn paths_match_byte_for_byte() -> Result<()> {
    let cluster = Cluster::shared().await?;
    // Past the ingress, which cleans paths before the gate can see them.
    let gate = Water::at(&cluster.environment.gate_url)?;
    let key = cluster.key().await?;
    for target in [
        "/api/v1/stress/",
        "/api/v1//stress",
        "/api/v1/./stress",
        "/api/v1/%73tress",
        "/api/v1/Stress",
        "/api/v1/stress;x=1",
        "/API/v1/stress",
    ] {
        assert_problem(&gate.get(target, &key).await?, 404, "not_found")?;
        assert_eq!(gate.get_without_key(target).await?.status, 401, "{target}");
    }
    Ok(())
}

#[tokio::test]
async fn the_method_is_judged_before_the_path() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for target in ["/api/v1/stress", "/api/v1/unknown"] {
        let answer = cluster.water.request("DELETE", target, &key, &[]).await?;
        assert_problem(&answer, 405, "method_not_allowed")?;
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    }
    Ok(())
}

/// The answer of the gate itself to these bytes, which the ingress would not pass on as they are.
async fn gate_answers(bytes: &str) -> Result<Answer> {
    let cluster = Cluster::shared().await?;
    let mut client = Water::at(&cluster.environment.gate_url)?.connect().await?;
    client.send(bytes).await?;
    client.answer().await
}

#[tokio::test]
async fn a_body_on_a_get_is_refused() -> Result<()> {
    for body in [
        "Content-Length: 1\r\n\r\nx",
        "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    ] {
        let request = format!("GET /api/v1/stress HTTP/1.1\r\nHost: water\r\n{body}");
        assert_problem(&gate_answers(&request).await?, 400, "body_not_allowed")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_host_is_named_once_and_not_contradicted() -> Result<()> {
    for request in [
        "GET /api/v1/stress HTTP/1.1\r\n\r\n",
        "GET /api/v1/stress HTTP/1.1\r\nHost: water\r\nHost: water\r\n\r\n",
        "GET http://other/api/v1/stress HTTP/1.1\r\nHost: water\r\n\r\n",
    ] {
        assert_problem(&gate_answers(request).await?, 400, "invalid_host")?;
    }
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_read_as_http_gets_an_empty_400() -> Result<()> {
    let answer = gate_answers("GET /api/v1/stress HTTP/1.1\r\nHost : water\r\n\r\n").await?;
    assert_eq!((answer.status, answer.body.len()), (400, 0), "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn a_target_over_2_kib_is_too_long() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let gate = Water::at(&cluster.environment.gate_url)?;
    let answer = gate
        .get_without_key(&format!("/api/v1/stress?x={}", "a".repeat(2048)))
        .await?;
    assert_problem(&answer, 414, "uri_too_long")
}

#[tokio::test]
async fn another_expectation_than_100_continue_fails() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let gate = Water::at(&cluster.environment.gate_url)?;
    let key = cluster.key().await?;
    let answer = gate
        .get_with("/api/v1/stress", &key, &[("Expect", "200-ok")])
        .await?;
    assert_problem(&answer, 417, "expectation_failed")
}

#[tokio::test]
async fn a_head_over_64_fields_is_too_large() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let gate = Water::at(&cluster.environment.gate_url)?;
    let fields = [("X-Field", "1"); 70];
    let answer = gate
        .connect()
        .await?
        .request("GET", "/api/v1/stress", &fields)
        .await?;
    assert_eq!(answer.status, 431, "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn a_good_request_id_is_kept_and_another_is_replaced() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    let good = [("X-Request-Id", "my-request.1")];
    let answer = cluster
        .water
        .get_with("/api/v1/stress?dept=x", &key, &good)
        .await?;
    assert_eq!(answer.header("x-request-id"), Some("my-request.1"));
    assert_eq!(answer.json()?["requestId"], "my-request.1");
    for bad in ["short", "with space in it", &"x".repeat(65)] {
        let answer = cluster
            .water
            .get_with("/api/v1/stress", &key, &[("X-Request-Id", bad)])
            .await?;
        let minted = answer.header("x-request-id").context("no request id")?;
        assert!(
            minted != bad && (8..=64).contains(&minted.len()),
            "{minted}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn the_contract_is_published_without_a_key() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get_without_key("/api/v1/openapi.json")
        .await?;
    let contract = answer.json()?;
    assert!(
        contract["openapi"]
            .as_str()
            .is_some_and(|version| version.starts_with("3.1"))
    );
    for target in ENDPOINTS {
        assert!(contract["paths"][target]["get"].is_object(), "{target}");
    }
    Ok(())
}
