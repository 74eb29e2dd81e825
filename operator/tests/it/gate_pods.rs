//! The gates' pods are watched: a change asks the API server for nothing, and a gate that is stuck is
//! waited for once.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;

use crate::Result;
use crate::audit::pods_listed;
use crate::gate::{GRACE, Gate};
use crate::steps::one_leadership;
use crate::world::{PATIENCE, World, brought};

async fn issue(world: &World, digits: &str) -> Result {
    for digit in digits.chars() {
        world.apply(&brought(&format!("key-{digit}"), digit))?;
    }
    for digit in digits.chars() {
        let object = format!("apikey/key-{digit}");
        world.condition(&object, "Ready", "True/Active").await?;
    }
    Ok(())
}

#[tokio::test]
async fn pods_are_not_listed_for_each_change() -> Result {
    // Each leader lists them once.
    one_leadership("pods-watched", World::running, async |world, _| {
        let gate = Gate::start(world, "gate-0", GRACE).await?;
        issue(world, "0").await?;
        let before = pods_listed(world)?;
        issue(world, "12345678").await?;
        let keys = gate.keys();
        ensure!(keys == 9, "{keys} keys");
        let after = pods_listed(world)?;
        ensure!(after == before, "{before} lists, then {after}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_gate_that_started_a_moment_ago_is_waited_for() -> Result {
    let (world, _operator) = World::running("pods-new").await?;
    issue(&world, "0").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    world.kubectl(&["delete", "apikey", "key-0", "--wait=false"])?;
    world.gone("apikey/key-0").await?;
    assert_eq!(gate.keys(), 0);
    Ok(())
}

#[tokio::test]
async fn a_gate_that_is_stuck_is_waited_for_once_and_not_by_each_change() -> Result {
    let (redis, world, _operator) = World::on_own_redis("pods-stuck").await?;
    issue(&world, "012").await?;
    let gate = Gate::start(&world, "gate-0", Duration::from_secs(1)).await?;
    gate.fall_silent();
    let generation = async || {
        let seen = world.observe().await?;
        anyhow::Ok(seen.verified().map(|meta| meta.generation))
    };
    let former = generation().await?;
    // The rebuild that follows leaves its lease behind.
    redis
        .command(&["DEL", "wd:{pods-stuck.water-data}:meta"])
        .await?;
    let rebuilt = async || {
        let now = generation().await?;
        ensure!(now.is_some() && now != former, "{now:?}");
        Ok(())
    };
    world.wait("the rebuild", PATIENCE, rebuilt).await?;
    let deleted = |name: &str| -> anyhow::Result<Duration> {
        let asked = Instant::now();
        world.kubectl(&["delete", "apikey", name])?;
        Ok(asked.elapsed())
    };
    // Its grace, and ten seconds.
    let first = deleted("key-0")?;
    assert!(first > Duration::from_secs(10), "{first:?}");
    // One of the others may wait for a busy machine.
    let others = [deleted("key-1")?, deleted("key-2")?];
    let fastest = others.iter().min();
    assert!(fastest < Some(&(first / 2)), "{others:?} after {first:?}");
    Ok(())
}
