//! The rest of a good HTTP citizen: HEAD, validators, codings, headers.

use anyhow::{Context, Result};
use water_e2e::Cluster;

use super::{ENDPOINTS, history};

#[tokio::test]
async fn head_answers_as_get_without_the_body() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    // Where a client says nothing, the ingress asks for gzip on its own account and decodes it.
    let plain = [("Accept-Encoding", "identity")];
    for target in ENDPOINTS {
        let get = cluster.water.request("GET", target, &key, &plain).await?;
        let head = cluster.water.request("HEAD", target, &key, &plain).await?;
        for name in [
            "content-length",
            "content-type",
            "etag",
            "cache-control",
            "vary",
        ] {
            assert_eq!(head.header(name), get.header(name), "{name} of {target}");
        }
        assert_eq!(
            get.header("content-length"),
            Some(get.body.len().to_string().as_str())
        );
        assert!(head.body.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn an_unchanged_answer_is_304_under_a_strong_or_weak_tag() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for target in ENDPOINTS {
        let answer = cluster.water.get(target, &key).await?;
        let tag = answer
            .header("etag")
            .with_context(|| format!("no ETag: {answer:?}"))?;
        assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
        for known in [
            tag.to_owned(),
            format!("W/{tag}"),
            format!("\"other\", {tag}"),
            "*".to_owned(),
        ] {
            let answer = cluster
                .water
                .get_with(target, &key, &[("If-None-Match", &known)])
                .await?;
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{known}");
            assert_eq!(answer.header("etag"), Some(tag));
        }
        let other = cluster
            .water
            .get_with(target, &key, &[("If-None-Match", "\"other\"")])
            .await?;
        assert_eq!(other.status, 200);
    }
    Ok(())
}

#[tokio::test]
async fn each_coding_has_a_tag_of_its_own() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    let mut tags = Vec::new();
    for coding in ["identity", "gzip", "br"] {
        let accept = [("Accept-Encoding", coding)];
        let answer = cluster
            .water
            .get_with("/api/v1/stress", &key, &accept)
            .await?;
        let is = answer.header("content-encoding").unwrap_or("identity");
        assert_eq!((answer.status, is), (200, coding));
        tags.push(answer.header("etag").context("no ETag")?.to_owned());
    }
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");
    Ok(())
}

#[tokio::test]
async fn a_body_below_1_kib_is_not_coded() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let accept = [("Accept-Encoding", "gzip, br")];
    let answer = cluster
        .water
        .get_with("/api/v1/stress?dept=34", &cluster.key().await?, &accept)
        .await?;
    assert_eq!(answer.header("content-encoding"), None);
    assert!(answer.body.len() < 1024);
    Ok(())
}

#[tokio::test]
async fn answers_say_how_long_they_may_be_kept() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    let public = "private, max-age=60, must-revalidate";
    let own = "private, no-cache";
    let kept = [public, public, own, own, own];
    for (target, cache_control) in ENDPOINTS.into_iter().zip(kept) {
        let answer = cluster.water.get(target, &key).await?;
        assert_eq!(
            answer.header("cache-control"),
            Some(cache_control),
            "{target}"
        );
        assert_eq!(
            answer.header("vary"),
            Some("Authorization, Accept, Accept-Encoding"),
            "{target}"
        );
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{target}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn cross_origin_requests_get_no_permission_by_default() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let origin = [("Origin", "https://example.org")];
    let answer = cluster
        .water
        .get_with("/api/v1/stress", &cluster.key().await?, &origin)
        .await?;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, None)
    );
    Ok(())
}

#[tokio::test]
async fn histories_are_compressed_as_lists_are() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let plain = history(&cluster, "/api/v1/hydrorisk?limit=100").await?;
    let key = &cluster.environment.api_key;
    let accept = [("Accept-Encoding", "gzip")];
    let coded = cluster
        .water
        .get_with("/api/v1/hydrorisk?limit=100", key, &accept)
        .await?;
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    assert!(coded.body.len() < plain.body.len() / 2);
    Ok(())
}
