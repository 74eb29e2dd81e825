//! Redis goes back to an earlier state without a restart, in which a revoked key works. Only the leader that saw
//! the later state knows. The directory is rebuilt all the same where Redis refuses the first try, where another
//! Redis user takes over, and where that leader ends before it can.

use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::json;
use water_harness::{Network, Process, Proxy, Redis};

use crate::Result;
use crate::restrictions::{holds, unreadable};
use crate::store_faults::{generation, rebuilt};
use crate::store_refusals::{USER, with_user};
use crate::world::{PATIENCE, World, api, brought};

/// Copies the whole directory.
const KEEP: &str = "for _, key in ipairs(redis.call('KEYS', 'wd:*')) do \
                    redis.call('COPY', key, 'kept:' .. key) end";
/// Puts the copy in the place of the directory.
const BRING_BACK: &str = "redis.call('DEL', unpack(redis.call('KEYS', 'wd:*'))) \
                          for _, key in ipairs(redis.call('KEYS', 'kept:*')) do \
                          redis.call('RENAME', key, string.sub(key, 6)) end";

/// What the directory held before it went back, and its generation.
struct Later {
    published: Vec<String>,
    generation: u64,
}

/// Keeps a state in which a key works, and revokes it.
async fn revoked_since(world: &World, redis: &Redis) -> anyhow::Result<Later> {
    world.in_force(&brought("revoked", '6')).await?;
    redis.command(&["EVAL", KEEP, "0"]).await?;
    world.kubectl(&["delete", "apikey", "revoked"])?;
    Ok(Later {
        published: world.published().await?,
        generation: generation(world).await?,
    })
}

/// How many scripts Redis has refused to run.
async fn refused_scripts(redis: &Redis) -> anyhow::Result<u64> {
    let info = redis.command(&["INFO", "commandstats"]).await?;
    let mut lines = info.lines();
    let stats = lines.find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
    let mut stats = stats.context("no script ran")?.split(',');
    let refused = stats.find_map(|stat| stat.strip_prefix("rejected_calls="));
    Ok(refused.context("no count")?.trim().parse()?)
}

/// Redis goes back, and refuses every script of the operator: the rebuild is tried and fails.
async fn went_back_and_refused(
    namespace: &str,
) -> anyhow::Result<(Redis, World, Arc<Process>, Later)> {
    let (redis, world, operator) = with_user(namespace).await?;
    let later = revoked_since(&world, &redis).await?;
    redis
        .command(&["ACL", "SETUSER", USER, "-evalsha", "-eval"])
        .await?;
    let before = refused_scripts(&redis).await?;
    redis.command(&["EVAL", BRING_BACK, "0"]).await?;
    let tried = async || {
        let refused = refused_scripts(&redis).await? - before;
        let has_begun = operator.log().contains("rebuilding the key directory");
        ensure!(has_begun && refused >= 2, "{refused} refused");
        Ok(())
    };
    world.wait("a try that is refused", PATIENCE, tried).await?;
    assert_eq!(world.published().await?.len(), later.published.len() + 1);
    Ok((redis, world, operator, later))
}

#[tokio::test]
async fn an_earlier_state_is_mended_though_the_first_try_was_refused() -> Result {
    let (redis, world, _operator, later) = went_back_and_refused("earlier-refused").await?;
    redis.command(&["ACL", "SETUSER", USER, "+@all"]).await?;
    rebuilt(&world, &later.published, later.generation).await
}

#[tokio::test]
async fn an_earlier_state_is_mended_though_another_redis_user_takes_over() -> Result {
    let (redis, world, _operator, later) = went_back_and_refused("earlier-user").await?;
    let other_user = json!({ "stringData": { "operator-url": redis.url() } });
    world.patch("secret/redis", &other_user, &[])?;
    rebuilt(&world, &later.published, later.generation).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_state_is_mended_by_the_successor_of_the_leader_that_saw_it() -> Result {
    let redis = Redis::start().await?;
    let world = World::with_redis("earlier-leader", &redis.url()).await?;
    world.apply(&api())?;
    let proxy = Proxy::before(world.cluster.address()).await?;
    let leader = world.operator_through("operator-0", &proxy)?;
    world.in_force(&brought("first", '0')).await?;
    let later = revoked_since(&world, &redis).await?;
    // It can neither claim nor lead any longer.
    proxy.set(Network::Reset);
    redis.command(&["EVAL", BRING_BACK, "0"]).await?;
    let marked = async || {
        let seen = world.observe().await?;
        ensure!(
            seen.meta.as_ref().is_some_and(|meta| !meta.complete),
            "{seen:?}"
        );
        Ok(())
    };
    world.wait("the mark", PATIENCE, marked).await?;
    leader.kill()?;
    let _successor = world.operator("operator-1")?;
    let whole = async || {
        let now = generation(&world).await?;
        ensure!(now > later.generation, "still generation {now}");
        let found = world.published().await?;
        ensure!(found == later.published, "{found:?}");
        Ok(())
    };
    world.wait("the rebuild", PATIENCE, whole).await
}

#[tokio::test]
async fn an_earlier_state_brings_no_revoked_key_of_an_unreadable_apikey_back() -> Result {
    let (redis, world, _operator) = World::on_own_redis("earlier-unreadable").await?;
    world.in_force(&brought("comma", '1')).await?;
    redis.command(&["EVAL", KEEP, "0"]).await?;
    let mut replaced = brought("comma", '2');
    replaced["spec"]["rotation"] = json!({ "overlapSeconds": 0 });
    world.apply(&replaced)?;
    holds(&world, &["222222222222 Enterprise Active"]).await?;
    unreadable(&world, '2').await?;
    let earlier = generation(&world).await?;
    redis.command(&["EVAL", BRING_BACK, "0"]).await?;
    rebuilt(&world, &["222222222222 Enterprise Active".into()], earlier).await
}
