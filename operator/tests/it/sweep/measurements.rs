//! The second sweep, a minute after the first, withdraws keys whose ApiKey went without a revocation.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;
use water_harness::Redis;

use super::{NEVER_USED, stripped};
use crate::Result;
use crate::steps::{count, event, prefix, until};
use crate::world::brought;

/// Interval between two sweeps.
const EVERY: Duration = Duration::from_secs(60);

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
