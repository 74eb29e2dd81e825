//! Redis goes back in time: no good key is refused for it, and none that was revoked comes back.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};
use water_harness::{HttpClient, Redis, wait_until};

use crate::site::{Key, SOON, Site, contents, is, problem};

const TARGET: &str = "/api/v1/stress";

/// A ready gate on a Redis of its own, with a good key and one that is good no more.
async fn with_keys() -> (Redis, Site, Key, Key) {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_unready(&redis, &[]).await;
    site.ready().await;
    let (good, revoked) = (site.key().await, site.key().await);
    redis.command(&["SAVE"]).await.unwrap();
    site.revoke(&revoked).await;
    (redis, site, good, revoked)
}

/// Every status that a key gets until the trouble is over.
async fn statuses(site: &Site, key: &Key, mut over: oneshot::Receiver<()>) -> BTreeSet<u16> {
    let mut seen = BTreeSet::new();
    let mut client: Option<HttpClient> = None;
    // The trouble is over long before 120 requests, the account's limit, were sent.
    let mut pace = interval(Duration::from_millis(250));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while over.try_recv().is_err() {
        pace.tick().await;
        let open = match client.take() {
            Some(open) => open,
            None => site.connect().await,
        };
        let open = client.insert(open);
        seen.insert(open.get(TARGET, &key.text).await.unwrap().status);
    }
    seen
}

/// What the operator does when it has seen the damage.
async fn rebuild(site: &Site, good: &Key) {
    // The first attempt may find the connection broken.
    let claim = async || Ok(site.directory.claim("0b5e", "a91c", None).await?);
    let (writer, _) = wait_until("a claim", SOON, claim).await.unwrap();
    writer
        .rebuild(|| contents(std::slice::from_ref(good)))
        .await
        .unwrap();
}

async fn metric(site: &Site, line: &str) {
    let shown = async || -> Result<()> {
        let metrics = site.admin("/metrics").await?;
        ensure!(metrics.text()?.contains(line), "{metrics:?}");
        Ok(())
    };
    wait_until(line, SOON, shown).await.unwrap();
}

/// The damage, its discovery by the gate, the rebuild, and what both keys were answered meanwhile.
async fn through(
    site: &Site,
    good: &Key,
    revoked: &Key,
    damage: impl AsyncFnOnce(),
) -> [BTreeSet<u16>; 2] {
    let (over, told) = oneshot::channel();
    let (over_too, told_too) = oneshot::channel();
    let trouble = async {
        damage().await;
        metric(site, "water_gate_directory_current 0.0").await;
        let unknown = site.get(TARGET, &Key::new()).await;
        assert_eq!(problem(&unknown), is(503, "dependency_unavailable"));
        rebuild(site, good).await;
        metric(site, "water_gate_directory_current 1.0").await;
        over.send(()).unwrap();
        over_too.send(()).unwrap();
    };
    let (good_seen, revoked_seen, ()) = tokio::join!(
        statuses(site, good, told),
        statuses(site, revoked, told_too),
        trouble
    );
    assert_eq!(site.get(TARGET, good).await.status, 200);
    assert_eq!(
        problem(&site.get(TARGET, revoked).await),
        is(401, "invalid_key")
    );
    [good_seen, revoked_seen]
}

#[tokio::test]
async fn an_old_dump_refuses_no_good_key_and_accepts_no_revoked_one() {
    let (redis, site, good, revoked) = with_keys().await;
    let restart = async || {
        redis.kill().unwrap();
        redis.start_again().await.unwrap();
    };
    let [good, revoked] = through(&site, &good, &revoked, restart).await;
    // 503 while Redis is away: nobody can count.
    assert!(good.is_subset(&BTreeSet::from([200, 503])), "{good:?}");
    assert!(
        revoked.is_subset(&BTreeSet::from([401, 503])),
        "{revoked:?}"
    );
}
