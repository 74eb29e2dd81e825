//! The product under a steady load from many accounts, with one that wants too much and one that waits for
//! `Retry-After`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep_until};
use water_e2e::load::{self, TARGETS};
use water_e2e::{ApiKey, Cluster, Component};

use super::starvation::{decided_by_share, few_are_decided_by_share};

/// Pods of each component of the release.
const REPLICAS: usize = 2;
const MINUTE: Duration = Duration::from_secs(60);
/// Longer than a minute, so that a window that slides and one that is reset differ.
const GREEDY_TIME: Duration = Duration::from_secs(75);

/// Uses the key's minute up, waits for `Retry-After`, and is accepted then.
async fn be_patient(cluster: &Cluster, key: &str) -> Result<()> {
    let mut client = cluster.water.connect().await?;
    let mut answer = client.get("/api/v1/stress?dept=34", key).await?;
    while answer.status == 200 {
        answer = client.get("/api/v1/stress?dept=34", key).await?;
    }
    assert_eq!(answer.status, 429, "{answer:?}");
    let wait = answer.header("retry-after").context("no Retry-After")?;
    // Exactly this wait, and nothing else, is tested to be enough.
    sleep_until(Instant::now() + Duration::from_secs(wait.parse()?)).await;
    assert_eq!(client.get("/api/v1/stress", key).await?.status, 200);
    Ok(())
}

/// 300 accounts, each at 100 requests a minute, below its limit of 120: 500 a second. On a machine that these keep busy
/// some requests are decided by a gate's share, without Redis: such a one may be refused, and never one more accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_under_the_limit_is_refused_beside_one_who_gets_exactly_120_a_minute() -> Result<()>
{
    // With other tests' installations two cores do not carry it.
    let cluster = Cluster::alone().await?;
    let keys = cluster.load_keys().await?;
    let fresh = |name: &str| {
        let account = format!("{name}-{}", std::process::id());
        ApiKey::named(name).of_account(&account)
    };
    let greedy = cluster.issue(&fresh("traffic-greedy")).await?;
    let patient = cluster.issue(&fresh("traffic-patient")).await?;
    let steady = load::Load {
        expected: Some(429),
        ..load::Load::evenly(&cluster.water, 500, keys, &TARGETS).promptly()
    };
    let greedy = load::Load {
        expected: Some(429),
        ..load::Load::evenly(
            &cluster.water,
            50,
            vec![greedy],
            &["/api/v1/stress?dept=34"],
        )
        .promptly()
    };
    let gates = Component::Gate.healed(&cluster, REPLICAS, &[]).await?;
    let before = decided_by_share(&gates).await?;
    let (steady, greedy, patient) = tokio::join!(
        load::send_for(steady, MINUTE),
        load::send_for(greedy, GREEDY_TIME),
        be_patient(&cluster, &patient),
    );
    let (steady, greedy) = (steady?, greedy?);
    let shared = decided_by_share(&gates).await? - before;
    println!("500/s from 300 accounts: {steady}");
    println!("one account at 50/s beside them: {greedy}; {shared} of all decided without Redis");
    patient?;
    steady.without_failures()?;
    greedy.without_failures()?;
    // 120 at once, then 120 as those leave the window: one at 50/s takes 2.4 s for either.
    let ok = greedy.ok as f64;
    ensure!(
        240.0 - shared <= ok && ok <= 240.0,
        "{greedy}; {shared} decided without Redis"
    );
    ensure!(
        steady.expected as f64 <= shared,
        "under the limit {steady}; {shared} decided without Redis"
    );
    few_are_decided_by_share(shared, steady.sent + greedy.sent)?;
    let overfull = greedy.overfull(120, MINUTE);
    ensure!(overfull.is_none(), "121 were accepted within {overfull:?}");
    Ok(())
}
