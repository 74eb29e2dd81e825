//! Credentials: where they may come from, and how each refusal looks.

use anyhow::Result;
use water_e2e::{ApiKey, Cluster};

use super::assert_problem;

const CHALLENGE: &str = r#"Bearer realm="water-data""#;

fn challenge(error: &str) -> String {
    format!(r#"{CHALLENGE}, error="{error}""#)
}

#[tokio::test]
async fn no_credentials_are_challenged_without_an_error() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster.water.get_without_key("/api/v1/stress").await?;
    assert_problem(&answer, 401, "missing_credentials")?;
    assert_eq!(answer.header("www-authenticate"), Some(CHALLENGE));
    Ok(())
}

#[tokio::test]
async fn malformed_unknown_and_revoked_keys_are_refused_alike() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let revoked = cluster.issue(&ApiKey::named("revoked")).await?;
    cluster.delete("revoked")?;
    let unknown = revoked.replace("wdk_", "wdk_x");
    for key in ["malformed", &unknown, &revoked] {
        let answer = cluster.water.get("/api/v1/stress", key).await?;
        assert_problem(&answer, 401, "invalid_key")?;
        assert_eq!(
            answer.header("www-authenticate"),
            Some(challenge("invalid_token").as_str())
        );
    }
    Ok(())
}

async fn assert_out_of_force(key: ApiKey, reason: &str, code: &str) -> Result<()> {
    let cluster = Cluster::shared().await?;
    cluster.delete(key.name())?;
    let text = cluster.issue(&ApiKey::named(key.name())).await?;
    cluster.kubectl.apply(&key.manifest())?;
    let status = if reason == "Expired" { "False" } else { "True" };
    cluster
        .wait_for_key(key.name(), status, Some(reason))
        .await?;
    let answer = cluster.water.get("/api/v1/stress", &text).await?;
    assert_problem(&answer, 401, code)?;
    assert_eq!(
        answer.header("www-authenticate"),
        Some(challenge("invalid_token").as_str())
    );
    Ok(())
}

#[tokio::test]
async fn an_expired_key_says_so() -> Result<()> {
    let key = ApiKey::named("expired").with("expirationTime", "2026-01-01T00:00:00Z");
    assert_out_of_force(key, "Expired", "key_expired").await
}

#[tokio::test]
async fn a_suspended_key_says_so() -> Result<()> {
    assert_out_of_force(
        ApiKey::named("suspended").suspended(),
        "Suspended",
        "key_suspended",
    )
    .await
}

#[tokio::test]
async fn a_key_that_is_not_yet_valid_says_so() -> Result<()> {
    let key = ApiKey::named("not-yet-valid").with("notBefore", "2126-01-01T00:00:00Z");
    assert_out_of_force(key, "NotYetValid", "key_not_yet_valid").await
}

#[tokio::test]
async fn two_authorization_headers_are_refused_even_when_identical() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    let again = [("Authorization", format!("Bearer {key}"))];
    let again = again
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let answer = cluster
        .water
        .get_with("/api/v1/stress", &key, &again)
        .await?;
    assert_problem(&answer, 401, "invalid_request")?;
    assert_eq!(
        answer.header("www-authenticate"),
        Some(challenge("invalid_request").as_str())
    );
    Ok(())
}

#[tokio::test]
async fn a_plan_without_access_is_told_that_enterprise_is_needed() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/stress", &cluster.environment.free_api_key)
        .await?;
    assert_problem(&answer, 403, "plan_insufficient")?;
    assert!(
        answer.json()?["title"]
            .as_str()
            .is_some_and(|title| title.contains("Enterprise"))
    );
    assert_eq!(
        answer.header("www-authenticate"),
        Some(challenge("insufficient_scope").as_str())
    );
    Ok(())
}

#[tokio::test]
async fn the_scheme_is_read_in_any_case_and_after_it_any_spaces() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for credentials in [
        format!("bearer {key}"),
        format!("BEARER {key}"),
        format!("Bearer   {key}"),
    ] {
        let headers = [("Authorization", credentials.as_str())];
        let answer = cluster
            .water
            .connect()
            .await?
            .request("GET", "/api/v1/stress", &headers)
            .await?;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_key_in_the_query_is_refused() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    let answer = cluster
        .water
        .get_without_key(&format!("/api/v1/stress?anything={key}"))
        .await?;
    assert_problem(&answer, 400, "key_in_query")?;
    assert!(!answer.text()?.contains(&key));
    Ok(())
}

#[tokio::test]
async fn a_key_in_a_cookie_or_another_header_is_no_credential() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for name in ["Cookie", "X-API-Key", "Proxy-Authorization"] {
        let headers = [(name, key.as_str())];
        let answer = cluster
            .water
            .connect()
            .await?
            .request("GET", "/api/v1/stress", &headers)
            .await?;
        assert_problem(&answer, 401, "missing_credentials")?;
    }
    Ok(())
}
