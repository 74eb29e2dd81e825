//! Damage that is looked for once a minute.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;

use super::{evict, with_keys};
use crate::Result;
use crate::steps::{generation, rebuilt};

#[tokio::test]
async fn fault_25_a_leader_misses_evicted_records_within_a_minute() -> Result {
    let (redis, world, _operator) = with_keys("fault-evicted-minute").await?;
    let (published, earlier) = (world.published().await?, generation(&world).await?);
    evict(&redis, &world, "records:").await?;
    let evicted = Instant::now();
    rebuilt(&world, &published, earlier).await?;
    // The count once a minute, and the rebuild.
    let took = evicted.elapsed();
    ensure!(took < Duration::from_secs(75), "{took:?}");
    Ok(())
}
