//! Redis away: never the client's fault, whatever the key.

use anyhow::{Result, ensure};
use water_harness::{Redis, wait_until};

use crate::site::{Key, SOON, Site, is, problem};

const TARGET: &str = "/api/v1/stress";

#[tokio::test]
async fn without_a_complete_directory_the_gate_is_unready_and_answers_503() {
    let nowhere = [("WATER_INSTANCE", "water.never-written")];
    let site = Site::start_unready(Redis::shared().await.unwrap(), &nowhere).await;
    let unready = async || -> Result<()> {
        let ready = site.admin("/ready").await?;
        let missing = ready.text()?.contains("key directory");
        ensure!(ready.status == 503 && missing, "{ready:?}");
        Ok(())
    };
    wait_until("the admin port", SOON, unready).await.unwrap();
    assert_eq!(site.admin("/live").await.unwrap().status, 200);
    let answer = site.get(TARGET, &Key::new()).await;
    assert_eq!(problem(&answer), is(503, "dependency_unavailable"));
    assert_eq!(answer.header("retry-after"), Some("2"));
    let malformed = site
        .request("GET", TARGET, &[("Authorization", "Bearer x")])
        .await;
    assert_eq!(problem(&malformed), is(401, "invalid_key"));
}

#[tokio::test]
async fn past_the_grace_redis_away_is_503_for_every_key_and_over_when_it_is_back() {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_unready(&redis, &[("WATER_GRACE_SECONDS", "2")]).await;
    site.ready().await;
    let key = site.key().await;
    assert_eq!(site.get(TARGET, &key).await.status, 200);
    redis.kill().unwrap();
    assert_eq!(site.get(TARGET, &key).await.status, 200);
    let over = async || -> Result<()> {
        let answer = site.get(TARGET, &key).await;
        ensure!(answer.status == 503, "{answer:?}");
        Ok(())
    };
    wait_until("the grace's end", SOON, over).await.unwrap();
    let known = site.get(TARGET, &key).await;
    assert_eq!(problem(&known), is(503, "dependency_unavailable"));
    assert_eq!(known.header("retry-after"), Some("2"));
    let metrics = site.admin("/metrics").await.unwrap();
    let refusing = r#"water_gate_limits_mode{mode="refusing"} 1"#;
    assert!(metrics.text().unwrap().contains(refusing), "{metrics:?}");
    let doubtful = async || -> Result<()> {
        let metrics = site.admin("/metrics").await?;
        let doubt = metrics.text()?.contains("water_gate_directory_current 0.0");
        ensure!(doubt, "{metrics:?}");
        Ok(())
    };
    wait_until("doubt about the copy", SOON, doubtful)
        .await
        .unwrap();
    let unknown = site.get(TARGET, &Key::new()).await;
    assert_eq!(problem(&unknown), is(503, "dependency_unavailable"));
    let malformed = site
        .request("GET", TARGET, &[("Authorization", "Bearer x")])
        .await;
    assert_eq!(problem(&malformed), is(401, "invalid_key"));
    for path in ["/live", "/ready"] {
        assert_eq!(site.admin(path).await.unwrap().status, 200, "{path}");
    }
    redis.start_again().await.unwrap();
    let back = async || -> Result<()> {
        let answer = site.get(TARGET, &key).await;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    };
    wait_until("Redis to be found again", SOON, back)
        .await
        .unwrap();
}
