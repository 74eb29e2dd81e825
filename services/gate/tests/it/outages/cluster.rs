//! A Redis Cluster that moves slots or loses a master under load.

use anyhow::{Result, ensure};
use water_harness::{RedisCluster, wait_until};

use super::load::{Load, TARGET};
use super::{ACCOUNTS, OUTAGE};
use crate::site::{Key, SOON, Site, contents};

/// With the shortest grace all keys would be refused ten seconds after the feed fell silent: five
/// later the lease is renewed no more. At the load's pace these answers take twelve.
const LONGER_THAN_THE_GRACE: usize = 720;

/// A gate on a cluster of its own, under the load of these keys.
async fn under_load() -> (RedisCluster, Site, Vec<Key>, Load) {
    under_load_with(&[]).await
}

/// The same with more settings.
async fn under_load_with(settings: &[(&str, &str)]) -> (RedisCluster, Site, Vec<Key>, Load) {
    let cluster = RedisCluster::start().await.unwrap();
    let site = Site::start_at(&cluster.url_as("default", ""), settings).await;
    site.ready().await;
    let keys: Vec<Key> = (0..ACCOUNTS).map(|_| Key::new()).collect();
    site.publish_all(&keys).await;
    let load = Load::start(&site, &keys).await;
    load.next(OUTAGE).await;
    (cluster, site, keys, load)
}

async fn shows(site: &Site, expected: impl Fn(&str) -> bool) {
    let shown = async || -> Result<()> {
        let metrics = site.admin("/metrics").await?;
        ensure!(expected(metrics.text()?), "{}", metrics.text()?);
        Ok(())
    };
    wait_until("the metrics", SOON, shown).await.unwrap();
}

/// Every good key was served, and Redis decides again.
async fn held(site: &Site, load: Load) {
    shows(site, |metrics| {
        metrics.contains(r#"water_gate_limits_mode{mode="exact"} 1"#)
    })
    .await;
    load.next(OUTAGE / 2).await;
    load.stop().await.held();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_that_move_to_another_master_fail_no_good_key() {
    let (cluster, site, keys, load) = under_load().await;
    for key in keys.iter().step_by(ACCOUNTS / 5) {
        let account = site.instance.minute(&key.record.account);
        let moving = cluster.begin_move(&account).await.unwrap();
        load.next(ACCOUNTS).await;
        moving.finish().await.unwrap();
    }
    held(&site, load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_on_its_way_for_longer_than_the_grace_fails_no_good_key() {
    let (cluster, site, keys, load) = under_load_with(&[("WATER_GRACE_SECONDS", "5")]).await;
    let moving = cluster.begin_move(&site.instance.meta()).await.unwrap();
    load.next(LONGER_THAN_THE_GRACE).await;
    moving.finish().await.unwrap();
    let new = Key::new();
    let all: Vec<Key> = keys.iter().chain([&new]).cloned().collect();
    let (writer, _) = site.directory.claim("0b5e", "a91c", None).await.unwrap();
    writer.rebuild(|| contents(&all)).await.unwrap();
    shows(&site, |metrics| {
        metrics.contains("water_gate_directory_current 1.0")
    })
    .await;
    assert_eq!(site.get(TARGET, &new).await.status, 200);
    held(&site, load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_lost_a_master_fails_no_good_key_and_is_told_apart() {
    let (cluster, site, _, load) = under_load().await;
    let lost = &cluster.masters()[1];
    lost.kill().unwrap();
    let none = "water_gate_limiter_failures_total{reason=\"cluster_down\"} 0\n";
    shows(&site, |metrics| !metrics.contains(none)).await;
    load.next(OUTAGE).await;
    lost.start_again().await.unwrap();
    cluster.ready().await.unwrap();
    held(&site, load).await;
}
