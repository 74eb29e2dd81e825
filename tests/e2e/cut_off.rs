//! A gate cannot reach Redis any more, or the operator cannot, while everybody else can.

use std::process;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use water_e2e::load::TARGETS;
use water_e2e::{ApiKey, Cluster, Component, Cut, Water, condition};

/// Pods of each component of the release.
const REPLICAS: usize = 2;
/// Requests of a limit of 120 that one of two gates admits while it cannot ask Redis.
const SHARE: u32 = 60;
const SOON: Duration = Duration::from_secs(60);

/// Returns the status of one request, and the rest of the account's minute.
async fn ask(gate: &Water, key: &str) -> Result<(u16, Option<u32>)> {
    let answer = gate.get(TARGETS[0], key).await?;
    let left = answer.header("x-ratelimit-remaining");
    Ok((answer.status, left.and_then(|left| left.parse().ok())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_38_a_gate_without_redis_serves_its_share_and_a_deletion_waits_for_it_by_name()
-> Result<()> {
    let cluster = Cluster::alone().await?;
    let good = cluster.issue(&ApiKey::named("cut-off-good")).await?;
    let deleted = cluster.issue(&ApiKey::named("cut-off-deleted")).await?;
    // An account's minute outlives its key, and a test may run again.
    let account = format!("cut-off-eager-{}", process::id());
    let eager = ApiKey::named("cut-off-eager").of_account(&account);
    let eager = cluster.issue(&eager).await?;
    let gates = Component::Gate.healed(&cluster, REPLICAS, &[]).await?;
    let (cut_off, other) = (&gates[0], &gates[1]);
    // A gate that an earlier test ended counts until its lease is over.
    let sharing = async || {
        let gates = cut_off.metric("water_gate_limits_gates").await?;
        ensure!(gates == REPLICAS as f64, "{gates} gates share the limits");
        Ok(())
    };
    cluster
        .wait_until("two gates to share the limits", SOON, sharing)
        .await?;
    let (here, there) = (cut_off.water()?, other.water()?);

    let cut = cut_off.cut_from(cluster.redis_address()?)?;
    let share = async || {
        let (status, left) = ask(&here, &good).await?;
        // A good key is never refused meanwhile.
        assert_eq!(status, 200);
        ensure!(left.is_some_and(|left| left < SHARE), "{left:?} left");
        Ok(())
    };
    cluster.wait_until("the gate's share", SOON, share).await?;
    for asked in 1..=SHARE {
        let (status, _) = ask(&here, &eager).await?;
        ensure!(status == 200, "{status} to request {asked} of {SHARE}");
    }
    ensure!(ask(&here, &eager).await?.0 == 429, "more than the share");

    let delete = ["delete", "apikey", "cut-off-deleted", "--wait=false"];
    cluster.kubectl.run(&delete)?;
    let named = async || {
        let key = cluster.kubectl.get(&["apikey", "cut-off-deleted"])?;
        let status = &key["status"];
        ensure!(status["waitingFor"] == json!([cut_off.name]), "{status}");
        Ok(())
    };
    cluster
        .wait_until("the deletion to wait for the gate", SOON, named)
        .await?;
    ensure!(ask(&here, &good).await?.0 == 200, "the good key, cut off");
    ensure!(
        ask(&there, &good).await?.0 == 200,
        "the good key, elsewhere"
    );
    ensure!(
        ask(&there, &deleted).await?.0 == 401,
        "the deleted key, elsewhere"
    );

    cut.heal()?;
    cluster.delete("cut-off-deleted")?;
    ensure!(
        ask(&here, &deleted).await?.0 == 401,
        "the deleted key, healed"
    );
    ensure!(ask(&here, &good).await?.0 == 200, "the good key, healed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_38_an_operator_without_redis_loses_no_deletion_and_no_request() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let good = cluster.issue(&ApiKey::named("cut-off-good")).await?;
    let deleted = cluster.issue(&ApiKey::named("cut-off-deleted")).await?;
    let redis = cluster.redis_address()?;
    // Whichever of them leads.
    let operators = Component::Operator.healed(&cluster, REPLICAS, &[]).await?;
    let cuts: Result<Vec<Cut>> = operators.iter().map(|pod| pod.cut_from(redis)).collect();
    let cuts = cuts?;

    let delete = ["delete", "apikey", "cut-off-deleted", "--wait=false"];
    cluster.kubectl.run(&delete)?;
    let pending = async || {
        let key = cluster.kubectl.get(&["apikey", "cut-off-deleted"])?;
        let ready = condition(&key, "Ready")?;
        ensure!(ready == ("False", "Deleting"), "{}", key["status"]);
        Ok(())
    };
    cluster
        .wait_until("the deletion to say that it waits", SOON, pending)
        .await?;
    for key in [&good, &deleted] {
        let (status, _) = ask(&cluster.water, key).await?;
        ensure!(status == 200, "{status} while only the operator is cut off");
    }

    cuts.iter().try_for_each(Cut::heal)?;
    cluster.delete("cut-off-deleted")?;
    ensure!(ask(&cluster.water, &deleted).await?.0 == 401, "healed");
    ensure!(ask(&cluster.water, &good).await?.0 == 200, "healed");
    Ok(())
}
