//! §5 to §9: authentication, errors, limits, versioning.

use anyhow::{Context, Result};
use water_e2e::{ApiKey, Cluster};

use super::{ENDPOINTS, HISTORIES, assert_refused, get_history, json_of, rows};

#[tokio::test]
async fn s5_1_every_request_carries_the_key_as_a_bearer_token() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    assert_eq!(cluster.water.get("/api/v1/stress", &key).await?.status, 200);
    for (name, value) in [
        ("X-API-Key", key.clone()),
        ("Authorization", format!("Basic {key}")),
    ] {
        let headers = [(name, value.as_str())];
        let answer = cluster
            .water
            .connect()
            .await?
            .request("GET", "/api/v1/stress", &headers)
            .await?;
        assert_refused(&cluster, answer, 401)?;
    }
    Ok(())
}

#[tokio::test]
async fn s5_2_a_key_on_the_enterprise_plan_has_access() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster
        .issue(&ApiKey::named("enterprise").on_plan("Enterprise"))
        .await?;
    assert_eq!(cluster.water.get("/api/v1/stress", &key).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn s5_3_a_missing_or_invalid_key_gives_401() -> Result<()> {
    let cluster = Cluster::shared().await?;
    assert_refused(
        &cluster,
        cluster.water.get_without_key("/api/v1/stress").await?,
        401,
    )?;
    let invalid = cluster.water.get("/api/v1/stress", "wdk_invalid").await?;
    assert_refused(&cluster, invalid, 401)
}

#[tokio::test]
async fn s5_4_a_key_on_an_insufficient_plan_gives_403() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster
        .issue(&ApiKey::named("insufficient").on_plan("Free"))
        .await?;
    assert_refused(
        &cluster,
        cluster.water.get("/api/v1/stress", &key).await?,
        403,
    )
}

/// Platform teams' way. The account holder's own, the settings, is clicked through in a browser by
/// the tests of §5.5 in `services/portal/web/tests/keys.spec.ts`.
#[tokio::test]
async fn s5_5_keys_are_generated_listed_and_revoked_as_apikeys_too() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster
        .issue(&ApiKey::named("settings").of_account("settings-account"))
        .await?;
    let listed = cluster.kubectl.run(&["get", "apikeys"])?;
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("settings ") && line.contains("settings-account"))
    );
    cluster.delete("settings")?;
    assert_refused(
        &cluster,
        cluster.water.get("/api/v1/stress", &key).await?,
        401,
    )
}

#[tokio::test]
async fn s7_a_resource_that_does_not_exist_gives_404() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for target in ["/api/v1/unknown", "/api/v1/stress?dept=20"] {
        assert_refused(&cluster, cluster.water.get(target, &key).await?, 404)?;
    }
    Ok(())
}

/// 500 says that there is a bug, so no request can be made that gives it: what can be held to is the
/// published contract.
#[tokio::test]
async fn s7_the_published_contract_has_all_five_errors_for_each_endpoint() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let contract = json_of(
        &cluster
            .water
            .get_without_key("/api/v1/openapi.json")
            .await?,
    )?;
    for target in ENDPOINTS {
        for status in ["401", "403", "404", "429", "500"] {
            let answer = &contract["paths"][target]["get"]["responses"][status];
            assert!(
                answer.is_object(),
                "{target} {status}: {}",
                contract["paths"][target]
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn s8_enterprise_allows_120_requests_a_minute_and_50000_a_day() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/stress", &cluster.key().await?)
        .await?;
    let policy = r#""minute";q=120;w=60, "day";q=50000;w=86400"#;
    assert_eq!(answer.header("ratelimit-policy"), Some(policy));
    Ok(())
}

#[tokio::test]
async fn s8_a_page_has_20_items_by_default_and_100_at_most_and_starts_at_0() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in HISTORIES {
        let page = get_history(&cluster, target).await?;
        assert_eq!((&page["limit"], &page["offset"]), (&20.into(), &0.into()));
        assert_eq!(rows(&page)?.len(), 20);
        let page = get_history(&cluster, &format!("{target}?limit=101")).await?;
        assert_eq!((&page["limit"], rows(&page)?.len()), (&100.into(), 100));
    }
    Ok(())
}

#[tokio::test]
async fn s9_the_path_carries_the_version() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for target in ["/stress", "/api/stress", "/api/v2/stress"] {
        assert_refused(&cluster, cluster.water.get(target, &key).await?, 404)?;
    }
    let contract = json_of(
        &cluster
            .water
            .get_without_key("/api/v1/openapi.json")
            .await?,
    )?;
    assert!(
        contract["info"]["version"]
            .as_str()
            .context("a version")?
            .starts_with("1.0")
    );
    Ok(())
}
