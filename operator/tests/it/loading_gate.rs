//! A gate that never completes its first load: it serves nothing. No change waits for it while it goes on, and none for
//! longer than its grace and ten seconds once it has crashed.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use tokio::time::Instant;
use water_harness::{Process, Redis};
use water_kit::is_all_asked_for;

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::steps::{current, edit, raise, ready, revoke, successor, until};
use crate::world::{World, key};

/// Time limit of a change while such a gate runs and nothing else does. Who waited for the gate would never end, since
/// it goes on renewing its lease.
const SOON: Duration = Duration::from_secs(10);
/// Grace of a gate that crashes.
const SHORT: Duration = Duration::from_secs(1);
/// Time for which a silent gate with that grace is waited for.
const SILENT: Duration = Duration::from_secs(11);
/// A user of Redis for whom each load fails.
const USER: &str = "loading";

/// A world with the key acme in force, and a gate whose loads all fail: it has renewed its lease.
async fn with_loading_gate(
    namespace: &str,
    grace: Duration,
) -> anyhow::Result<(Redis, World, Arc<Process>, Gate)> {
    let (redis, world, operator) = World::on_own_redis(namespace).await?;
    world.in_force(&key("acme")).await?;
    let rights = [
        "ACL", "SETUSER", USER, "on", "nopass", "~*", "&*", "+@all", "-hgetall",
    ];
    redis.command(&rights).await?;
    let url = redis
        .url()
        .replace("redis://", &format!("redis://{USER}:any@"));
    let gate = Gate::loading(&url, &world, "gate-0", grace)?;
    until(&world, "the lease of a gate without a copy", async || {
        let leases = world.leases().await?;
        ensure!(
            leases.gates.iter().any(|lease| lease.generation == 0),
            "{leases:?}"
        );
        Ok(())
    })
    .await?;
    Ok((redis, world, operator, gate))
}

/// Fails if this took too long, where nothing else runs.
fn within(limit: Duration, what: &str, begun: Instant) -> Result {
    let took = begun.elapsed();
    println!("{what}: {took:?}");
    ensure!(took < limit || !is_all_asked_for(), "{what}: {took:?}");
    Ok(())
}

#[tokio::test]
async fn fault_50_a_gate_that_never_completes_a_load_delays_no_change_for_ten_seconds() -> Result {
    let (_redis, world, _operator, _gate) = with_loading_gate("loading-gate", GRACE).await?;
    let first = current(&world.get("apikey/acme")?)?;
    let begun = Instant::now();
    raise(&world, 1)?;
    successor(&world, &first).await?;
    within(SOON, "a rotation", begun)?;
    let begun = Instant::now();
    world.in_force(&key("another")).await?;
    within(SOON, "an issue", begun)?;
    let begun = Instant::now();
    edit(&world, "acme", &json!({ "suspend": true }))?;
    ready(&world, "acme", "True/Suspended").await?;
    within(SOON, "a suspension", begun)?;
    let begun = Instant::now();
    revoke(&world, "acme").await?;
    within(SOON, "a deletion", begun)
}

#[tokio::test]
async fn fault_50_a_gate_that_crashes_in_its_load_delays_a_change_for_its_grace_and_ten_seconds()
-> Result {
    let (_redis, world, _operator, gate) = with_loading_gate("crashed-gate", SHORT).await?;
    gate.fall_silent();
    let renewed = world.leases().await?.gates[0].renewed;
    let begun = Instant::now();
    revoke(&world, "acme").await?;
    let silent = world.leases().await?.now.as_millis() - renewed.as_millis();
    ensure!(silent >= SILENT.as_millis() as i64, "{silent} ms");
    within(SILENT + SOON, "a deletion", begun)
}
