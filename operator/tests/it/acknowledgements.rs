//! What waits for the gates' word, and for how long: no key is revealed, and none is gone, before
//! every gate that counts has applied it.

use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::time::Instant;
use water_harness::Redis;

use crate::Result;
use crate::gate::{GRACE, Gate, Started, end_pod, pod};
use crate::world::{PATIENCE, World, brought, key};

/// A world with one gate that has a copy of the directory.
async fn with_gate(namespace: &str, grace: Duration) -> anyhow::Result<(World, Gate)> {
    let (world, _operator) = World::running(namespace).await?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", grace).await?;
    Ok((world, gate))
}

/// Waits until an ApiKey waits for exactly this gate, in its status and in words.
async fn awaits(world: &World, name: &str, gate: &str, reason: &str) -> Result {
    let object = format!("apikey/{name}");
    let what = format!("{object} to wait for {gate}");
    let named = async || {
        let found = world.get(&object)?;
        let status = &found["status"];
        ensure!(status["waitingFor"] == json!([gate]), "{status}");
        let ready = status["conditions"].as_array().into_iter().flatten();
        let ready = ready.clone().find(|condition| condition["type"] == "Ready");
        ensure!(
            ready.is_some_and(|ready| ready["reason"] == reason),
            "{status}"
        );
        ensure!(
            ready.is_some_and(|ready| ready["message"].to_string().contains(gate)),
            "{status}"
        );
        Ok(())
    };
    world.wait(&what, PATIENCE, named).await
}

fn delete(world: &World, name: &str) -> Result {
    world
        .kubectl(&["delete", "apikey", name, "--wait=false"])
        .map(drop)
}

#[tokio::test]
async fn a_key_is_not_revealed_before_every_gate_has_acknowledged_its_hash() -> Result {
    let (world, gate) = with_gate("ack-reveal", GRACE).await?;
    gate.fall_silent();
    world.apply(&key("acme"))?;
    awaits(&world, "acme", "gate-0", "AwaitingGates").await?;
    assert_eq!(world.published().await?.len(), 1);
    assert!(world.get("secret/acme-apikey").is_err());
    gate.follow();
    let ready = world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    assert_eq!(ready["status"]["waitingFor"], json!(null));
    assert_eq!(gate.keys(), 1);
    world.get("secret/acme-apikey")?;
    world.told("acme", &["KeyIssued"]).await?;
    Ok(())
}

#[tokio::test]
async fn a_key_in_a_lost_ones_place_is_not_revealed_before_every_gate_has_acknowledged_it() -> Result
{
    let (world, gate) = with_gate("ack-reissue", GRACE).await?;
    world.in_force(&key("acme")).await?;
    gate.fall_silent();
    world.kubectl(&["delete", "secret", "acme-apikey"])?;
    awaits(&world, "acme", "gate-0", "AwaitingGates").await?;
    assert!(world.get("secret/acme-apikey").is_err());
    gate.follow();
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    world.get("secret/acme-apikey")?;
    Ok(())
}

#[tokio::test]
async fn a_change_is_ready_once_every_gate_has_acknowledged_it() -> Result {
    let (world, gate) = with_gate("ack-change", GRACE).await?;
    world.in_force(&brought("acme", 'a')).await?;
    gate.fall_silent();
    world.patch("apikey/acme", &json!({ "spec": { "suspend": true } }), &[])?;
    awaits(&world, "acme", "gate-0", "AwaitingGates").await?;
    gate.follow();
    world
        .condition("apikey/acme", "Ready", "True/Suspended")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_deletion_waits_for_a_silent_gate_and_ends_with_its_acknowledgement() -> Result {
    let (world, gate) = with_gate("ack-delete", GRACE).await?;
    world.in_force(&brought("acme", 'b')).await?;
    gate.fall_silent();
    delete(&world, "acme")?;
    awaits(&world, "acme", "gate-0", "Deleting").await?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    gate.follow();
    world.gone("apikey/acme").await?;
    assert_eq!(gate.keys(), 0);
    Ok(())
}

#[tokio::test]
async fn a_silent_gate_is_not_waited_for_beyond_its_grace_and_ten_seconds() -> Result {
    let (world, gate) = with_gate("ack-run-out", Duration::from_secs(1)).await?;
    world.in_force(&brought("acme", 'c')).await?;
    gate.fall_silent();
    let renewed = world.leases().await?.gates[0].renewed;
    delete(&world, "acme")?;
    world.gone("apikey/acme").await?;
    let silent = world.leases().await?.now.as_millis() - renewed.as_millis();
    assert!(silent >= 11_000, "{silent} ms");
    Ok(())
}

#[tokio::test]
async fn a_gate_whose_pod_is_gone_holds_nothing_up() -> Result {
    let (world, gate) = with_gate("ack-gone", GRACE).await?;
    world.in_force(&brought("acme", 'd')).await?;
    gate.fall_silent();
    delete(&world, "acme")?;
    awaits(&world, "acme", "gate-0", "Deleting").await?;
    world.kubectl(&["delete", "pod", "gate-0", "--wait=false"])?;
    awaits(&world, "acme", "gate-0", "Deleting").await?;
    end_pod(&world, "gate-0")?;
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn a_ready_pod_is_waited_for_when_redis_has_lost_its_lease() -> Result {
    let (world, gate) = with_gate("ack-lost", GRACE).await?;
    pod(&world, "gate-1", false, Started::After)?;
    world.in_force(&brought("acme", 'e')).await?;
    gate.lose_lease().await?;
    delete(&world, "acme")?;
    awaits(&world, "acme", &gate.name, "Deleting").await?;
    end_pod(&world, &gate.name)?;
    // gate-1 was never ready and has no lease: it has read nothing.
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn a_pod_that_is_not_ready_and_older_than_the_directory_is_waited_for() -> Result {
    let (world, gate) = with_gate("ack-outlived", GRACE).await?;
    world.in_force(&brought("acme", 'f')).await?;
    // It may have read what Redis lost together with its lease.
    pod(&world, "gate-1", false, Started::Before)?;
    delete(&world, "acme")?;
    awaits(&world, "acme", "gate-1", "Deleting").await?;
    assert_eq!(gate.keys(), 0);
    end_pod(&world, "gate-1")?;
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn a_gate_whose_lease_came_back_old_is_waited_for() -> Result {
    let (redis, world, _operator) = World::on_own_redis("ack-rollback").await?;
    world.in_force(&brought("acme", 'e')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    gate.fall_silent();
    // What is saved here comes back minutes later, while the gate has renewed a moment ago.
    gate.age_lease(&redis, 2 * GRACE).await?;
    redis.command(&["SAVE"]).await?;
    redis.kill()?;
    redis.start_again().await?;
    delete(&world, "acme")?;
    awaits(&world, "acme", &gate.name, "Deleting").await?;
    assert_eq!(gate.keys(), 1);
    gate.follow();
    world.gone("apikey/acme").await?;
    assert_eq!(gate.keys(), 0);
    Ok(())
}

#[tokio::test]
async fn a_restart_beside_a_silent_gate_writes_nothing() -> Result {
    let (world, operator) = World::running("ack-restart").await?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    world.in_force(&key("acme")).await?;
    let counted = async || {
        let keys = world.get("waterdataapi/water-data")?["status"]["apiKeys"]["active"].clone();
        ensure!(keys == 1, "{keys} counted");
        Ok(())
    };
    world
        .wait("the key to be counted", PATIENCE, counted)
        .await?;
    gate.fall_silent();
    world.assert_restart_writes_nothing(&operator).await
}

/// How often Redis has read a whole hash, as each look at the gates' leases does.
async fn looks(redis: &Redis) -> anyhow::Result<u64> {
    let statistics = redis.command(&["INFO", "commandstats"]).await?;
    let mut lines = statistics.lines();
    let calls = lines.find_map(|line| line.strip_prefix("cmdstat_hgetall:calls="));
    let calls = calls.and_then(|calls| calls.split(',').next());
    Ok(calls.map_or(Ok(0), str::parse)?)
}

#[tokio::test]
async fn no_gate_is_looked_at_for_a_key_that_has_vanished() -> Result {
    // A look comes twice a second while anything is waited for; what is gone is forgotten each minute.
    let (quiet, within) = (Duration::from_secs(5), Duration::from_secs(150));
    let (redis, world, operator) = World::on_own_redis("ack-vanished").await?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    gate.fall_silent();
    world.apply(&brought("acme", 'a'))?;
    awaits(&world, "acme", "gate-0", "AwaitingGates").await?;
    let first = looks(&redis).await?;
    let looked = async || {
        let now = looks(&redis).await?;
        ensure!(now > first + 3, "{first} looks, now {now}");
        Ok(())
    };
    world.wait("looks at the gate", PATIENCE, looked).await?;
    // Without its finalizer no pass sees its end.
    operator.signal(Signal::SIGSTOP)?;
    let stripped = json!({ "metadata": { "finalizers": null } });
    world.patch("apikey/acme", &stripped, &[])?;
    world.kubectl(&["delete", "apikey", "acme"])?;
    operator.signal(Signal::SIGCONT)?;
    let mut last = (looks(&redis).await?, Instant::now());
    let rests = async || {
        let now = looks(&redis).await?;
        if now != last.0 {
            last = (now, Instant::now());
        }
        ensure!(last.1.elapsed() >= quiet, "{now} looks");
        Ok(())
    };
    world.wait("no more looks", within, rests).await
}
