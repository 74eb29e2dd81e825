//! Redis away: never the client's fault, whatever the key.

use std::time::Duration;

use anyhow::{Result, ensure};
use water_harness::{Network, Proxy, Redis, wait_until};

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

/// Asks with a good key until it is answered like this.
async fn comes_to(site: &Site, key: &Key, status: u16) {
    let answered = async || -> Result<()> {
        let answer = site.get(TARGET, key).await;
        ensure!(answer.status == status, "{answer:?}");
        Ok(())
    };
    wait_until("another answer", SOON, answered).await.unwrap();
}

#[tokio::test]
async fn a_redis_that_stays_slow_is_as_good_as_none_past_the_grace() {
    let redis = Redis::start().await.unwrap();
    let proxy = Proxy::before(redis.address()).await.unwrap();
    let url = format!("redis://{}/", proxy.address());
    let settings = [("WATER_REDIS_URL", &*url), ("WATER_GRACE_SECONDS", "10")];
    let site = Site::start_unready(&redis, &settings).await;
    site.ready().await;
    let key = site.key().await;
    proxy.set(Network::Delay(Duration::from_millis(500)));
    assert_eq!(site.get(TARGET, &key).await.status, 200);
    comes_to(&site, &key, 503).await;
    let told = async || -> Result<()> {
        let log = site.gate.log();
        let mut lines = log.lines().filter(|line| line.contains("refusing"));
        ensure!(lines.any(|line| line.contains(r#""slow""#)), "{log}");
        Ok(())
    };
    wait_until("the log", SOON, told).await.unwrap();
    proxy.set(Network::Good);
    comes_to(&site, &key, 200).await;
}

#[tokio::test]
async fn past_the_grace_redis_away_is_503_for_every_key_and_over_when_it_is_back() {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_unready(&redis, &[("WATER_GRACE_SECONDS", "10")]).await;
    site.ready().await;
    let key = site.key().await;
    assert_eq!(site.get(TARGET, &key).await.status, 200);
    redis.kill().unwrap();
    assert_eq!(site.get(TARGET, &key).await.status, 200);
    comes_to(&site, &key, 503).await;
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
    // It came back empty. Past the grace only what was read since counts.
    site.republish(&redis, std::slice::from_ref(&key)).await;
    comes_to(&site, &key, 200).await;
}
