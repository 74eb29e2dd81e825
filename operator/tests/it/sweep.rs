//! Tests of the sweep: it restores records that somebody changed, and forgets nothing by a wrong clock. The modules
//! `measurements` and `long` have keys whose ApiKey went without a revocation: they are withdrawn, unless they are too
//! many.

mod long;
mod measurements;

use anyhow::ensure;
use water_harness::{Clock, Redis};

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::steps::{OBJECT, prefix, ready, revoke, says, stalled, strip, until};
use crate::world::{PATIENCE, World, api, brought};

/// Turns the suspension of every record around, as nothing of the product does: bit 0 of its second
/// byte. Returns the count of records.
const TURN_AROUND: &str = "\
    local turned = 0 \
    for _, shard in ipairs(redis.call('KEYS', ARGV[1])) do \
        for _, hash in ipairs(redis.call('HKEYS', shard)) do \
            local record = redis.call('HGET', shard, hash) \
            local flags = string.char(bit.bxor(record:byte(2), 1)) \
            redis.call('HSET', shard, hash, record:sub(1, 1) .. flags .. record:sub(3)) \
            turned = turned + 1 \
        end \
    end \
    return turned";

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
async fn records_that_somebody_changed_are_restored() -> Result {
    let (redis, world, _operator) = World::on_own_redis("sweep-restores").await?;
    world.in_force(&brought("active", 'a')).await?;
    let mut suspended = brought("suspended", 'b');
    suspended["spec"]["suspend"] = true.into();
    world.apply(&suspended)?;
    ready(&world, "suspended", "True/Suspended").await?;
    let before = world.published().await?;
    let records = format!("{}records:*", prefix(&world));
    let turned = redis.command(&["EVAL", TURN_AROUND, "0", &records]).await?;
    assert_eq!(turned, ":2\r\n");
    // It may have loaded what was changed; no feed reports that.
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    until(&world, "the records' restoration", async || {
        let published = world.published().await?;
        ensure!(published == before, "{published:?}");
        ensure!(
            gate.accepts(&"a".repeat(64))?,
            "the active key is suspended"
        );
        ensure!(
            !gate.accepts(&"b".repeat(64))?,
            "the suspended key is active"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_redis_whose_clock_is_put_ahead_by_months_forgets_no_revocation() -> Result {
    let clock = Clock::new()?;
    let redis = Redis::start_on(&clock).await?;
    let world = World::with_redis("sweep-clock", &redis.url()).await?;
    world.apply(&api())?;
    let operator = world.operator("first")?;
    world.in_force(&brought("acme", 'a')).await?;
    revoke(&world, "acme").await?;
    operator.stop(PATIENCE).await?;
    clock.set(91 * 86_400)?;
    let _next = world.operator("second")?;
    let degraded = "Degraded=True/ClocksApart";
    says(&world, OBJECT, degraded, "set right the one that is wrong").await?;
    world.apply(&brought("acme", 'a'))?;
    stalled(&world, "acme", "RevokedInStore").await.map(drop)
}
