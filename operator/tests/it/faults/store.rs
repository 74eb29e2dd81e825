//! Redis forgets, or takes nothing more: a replica that lagged behind is promoted, an old dump comes
//! back, and there is no memory left. The module `long` has evictions.

mod long;

use anyhow::{Result, ensure};
use tokio::time::Instant;
use water_harness::Redis;
use water_kit::operator::clients::Expected;
use water_kit::operator::stage::Stage;
use water_kit::operator::world::PATIENCE;

use super::population::Population;
use super::scenario::Scenario;

/// Lets a server copy another, and promotes it where the copy is to become the primary.
async fn copy(stage: &Stage, to: &Redis, from: &Redis) -> Result<()> {
    let port = from.port().to_string();
    to.command(&["REPLICAOF", "127.0.0.1", &port]).await?;
    let copied = async || {
        let info = to.command(&["INFO", "replication"]).await?;
        ensure!(info.contains("master_link_status:up"), "{info}");
        Ok(())
    };
    stage.wait("the replica's copy", PATIENCE, copied).await?;
    to.command(&["REPLICAOF", "NO", "ONE"]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_24_a_promoted_replica_that_lagged_behind_revives_no_key_and_loses_none() -> Result<()>
{
    let stage = Stage::new("promoted").await?;
    let population = Population::make(&stage).await?;
    let replica = Redis::start().await?;
    copy(&stage, &replica, &stage.redis).await?;
    // All that the replica does not know.
    population.change(&stage)?;
    population.rest(&stage, Instant::now()).await?;
    let earlier = stage.point().await?.generation;
    // Where the primary was there is the replica's copy, which then becomes the primary.
    copy(&stage, &stage.redis, &replica).await?;
    let promoted = Instant::now();
    stage.rebuilt(earlier).await?;
    population.rest(&stage, promoted).await?;
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_23_a_revocation_that_redis_forgot_and_a_dump_still_holds_counts_again() -> Result<()>
{
    let stage = Stage::new("recalled").await?;
    let hash = stage.bring("partner", 'a').await?;
    stage.revoke("partner", hash).await?;
    stage.redis.command(&["SAVE"]).await?;
    let earlier = stage.point().await?.generation;
    stage.clients.expect(hash, Expected::Either);
    stage.redis.command(&["FLUSHALL"]).await?;
    stage.rebuilt(earlier).await?;
    stage.bring("partner", 'a').await?;
    stage.clients.expect(hash, Expected::Either);
    stage.redis.kill()?;
    stage.redis.start_again().await?;
    let revoked = "True/RevokedInStore";
    stage.key_is("partner", "Stalled", revoked).await?;
    let refused = async || {
        ensure!(stage.gate.account(&hash)?.is_none(), "it is accepted");
        Ok(())
    };
    stage.wait("the key's refusal", PATIENCE, refused).await?;
    stage.clients.expect(hash, Expected::Refused);
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_25_a_full_redis_takes_every_restriction_and_loses_no_other_change() -> Result<()> {
    let stage = Stage::new("out-of-memory").await?;
    let population = Population::make(&stage).await?;
    let memory = async |bytes| {
        let words = ["CONFIG", "SET", "maxmemory", bytes];
        stage.redis.command(&words).await.map(drop)
    };
    memory("1").await?;
    population.change(&stage)?;
    let refused = "False/StoreOutOfMemory";
    stage.key_is("late-create", "Synced", refused).await?;
    for restriction in [Scenario::Suspend, Scenario::Delete] {
        population.ended(&stage, restriction).await?;
    }
    memory("0").await?;
    population.rest(&stage, Instant::now()).await?;
    stage.holds_for_good().await
}
