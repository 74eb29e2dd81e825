//! The second sweep, a minute after the first, withdraws keys whose ApiKey went without a revocation,
//! unless they are too many.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use tokio::time::Instant;
use water_harness::Redis;

use crate::Result;
use crate::steps::{OBJECT, count, event, prefix, ready, strip, until};
use crate::world::{PATIENCE, World, brought};

/// Interval between two sweeps.
const EVERY: Duration = Duration::from_secs(60);
/// A key id with a last use of long ago: the operator's first sweep ends with forgetting it.
const NEVER_USED: &str = "000000000000";

/// A world with ten keys in force, of which so many were stripped while no operator ran; another one
/// runs now.
async fn stripped(namespace: &str, count: u8) -> anyhow::Result<World> {
    let (world, running) = World::running(namespace).await?;
    for digit in '0'..='9' {
        world.apply(&brought(&format!("key-{digit}"), digit))?;
    }
    for digit in '0'..='9' {
        ready(&world, &format!("key-{digit}"), "True/Active").await?;
    }
    running.stop(PATIENCE).await?;
    for number in 0..count {
        strip(&world, &format!("key-{number}")).await?;
    }
    let used = format!("{}used", prefix(&world));
    let redis = Redis::shared().await?;
    redis.command(&["ZADD", &used, "1", NEVER_USED]).await?;
    world.operator("second")?;
    Ok(world)
}

#[tokio::test]
async fn fault_17_keys_stripped_while_no_operator_ran_outlast_one_sweep_and_go_with_the_second()
-> Result {
    let world = stripped("swept", 4).await?;
    let (redis, used) = (Redis::shared().await?, format!("{}used", prefix(&world)));
    until(&world, "the first sweep", async || {
        let score = redis.command(&["ZSCORE", &used, NEVER_USED]).await?;
        ensure!(score.starts_with("$-1"), "{score}");
        Ok(())
    })
    .await?;
    let first = Instant::now();
    assert_eq!(world.published().await?.len(), 10, "after one sweep");
    count(&world, 6).await?;
    let after = first.elapsed();
    assert!(after < EVERY * 3 / 2, "not by the second sweep: {after:?}");
    event(&world, "water-data", "KeysSwept").await?;
    // A backup may bring the ApiKeys back: no tombstone bars their keys.
    for digit in '0'..='3' {
        world
            .in_force(&brought(&format!("key-{digit}"), digit))
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn fault_17_most_keys_are_withdrawn_only_when_somebody_allows_it() -> Result {
    let world = stripped("held-back", 6).await?;
    world
        .condition(OBJECT, "Degraded", "True/SweepHeld")
        .await?;
    assert_eq!(world.published().await?.len(), 10);
    let allow = json!({ "metadata": { "annotations": { "waterdata.dev/sweep-up-to": "6" } } });
    world.patch(OBJECT, &allow, &[])?;
    count(&world, 4).await.map(drop)
}
