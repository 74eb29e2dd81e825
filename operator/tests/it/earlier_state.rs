//! Redis goes back to an earlier state without a restart, in which a revoked key works. Only the leader that saw
//! the later state knows, and leaves that in its Lease. The directory is rebuilt all the same where Redis refuses the
//! first try, where another Redis user takes over, and where that leader ends before it can, or before Redis goes back.

use anyhow::{Context, ensure};
use serde_json::json;
use water_harness::{Network, Process, Proxy, Redis};
use water_operator::lease::positions::ANNOTATION;

use crate::Result;
use crate::steps::{event, generation, given_back, holds, rebuilt, revoke, spoil, until};
use crate::store_refusals::{USER, with_user};
use crate::world::{API, PATIENCE, World, api, brought};

const LEASE: &str = "lease/water-operator";

/// Copies the whole directory.
const KEEP: &str = "for _, key in ipairs(redis.call('KEYS', 'wd:*')) do \
                    redis.call('COPY', key, 'kept:' .. key) end";
/// Puts the copy in the place of the directory.
const BRING_BACK: &str = "redis.call('DEL', unpack(redis.call('KEYS', 'wd:*'))) \
                          for _, key in ipairs(redis.call('KEYS', 'kept:*')) do \
                          redis.call('RENAME', key, string.sub(key, 6)) end";

/// Keeps a state in which a key works, and revokes it. Returns what is held then, and its generation.
async fn revoked_since(
    world: &World,
    redis: &Redis,
    digit: char,
) -> anyhow::Result<(Vec<String>, u64)> {
    let name = format!("revoked-{digit}");
    world.in_force(&brought(&name, digit)).await?;
    redis.command(&["EVAL", KEEP, "0"]).await?;
    revoke(world, &name).await?;
    Ok((world.published().await?, generation(world).await?))
}

/// Number of scripts that Redis has refused to run.
async fn refused_scripts(redis: &Redis) -> anyhow::Result<u64> {
    let info = redis.command(&["INFO", "commandstats"]).await?;
    let mut lines = info.lines();
    let stats = lines.find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
    let mut stats = stats.context("no script ran")?.split(',');
    let refused = stats.find_map(|stat| stat.strip_prefix("rejected_calls="));
    Ok(refused.context("no count")?.trim().parse()?)
}

/// Redis goes back, and refuses every script of the operator: a rebuild is tried and fails.
async fn go_back_and_refuse(world: &World, redis: &Redis, operator: &Process) -> Result {
    let tries = || {
        operator
            .log()
            .matches("rebuilding the key directory")
            .count()
    };
    let less = ["ACL", "SETUSER", USER, "-evalsha", "-eval"];
    redis.command(&less).await?;
    let (before, tried) = (refused_scripts(redis).await?, tries());
    redis.command(&["EVAL", BRING_BACK, "0"]).await?;
    until(world, "a try that is refused", async || {
        let refused = refused_scripts(redis).await? - before;
        ensure!(tries() > tried && refused >= 2, "{refused} refused");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_earlier_state_is_mended_though_the_first_try_was_refused_or_another_redis_user_takes_over()
-> Result {
    let (redis, world, operator) = with_user("earlier-refused").await?;
    let (later, earlier) = revoked_since(&world, &redis, '6').await?;
    go_back_and_refuse(&world, &redis, &operator).await?;
    assert_eq!(world.published().await?.len(), later.len() + 1);
    redis.command(&["ACL", "SETUSER", USER, "+@all"]).await?;
    rebuilt(&world, &later, earlier).await?;

    let (later, earlier) = revoked_since(&world, &redis, '7').await?;
    go_back_and_refuse(&world, &redis, &operator).await?;
    assert_eq!(world.published().await?.len(), later.len() + 1);
    let other_user = json!({ "stringData": { "operator-url": redis.url() } });
    world.patch("secret/redis", &other_user, &[])?;
    rebuilt(&world, &later, earlier).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_state_is_mended_by_the_successor_of_the_leader_that_saw_it() -> Result {
    let redis = Redis::start().await?;
    let world = World::with_redis("earlier-leader", &redis.url()).await?;
    world.apply(&api())?;
    let proxy = Proxy::before(world.cluster.address()).await?;
    let leader = world.operator_through("operator-0", &proxy)?;
    world.in_force(&brought("first", '0')).await?;
    let (later, earlier) = revoked_since(&world, &redis, '6').await?;
    // It can neither claim nor lead any longer.
    proxy.set(Network::Reset);
    redis.command(&["EVAL", BRING_BACK, "0"]).await?;
    until(&world, "the mark", async || {
        let seen = world.observe().await?;
        let is_marked = seen.meta.as_ref().is_some_and(|meta| !meta.complete);
        ensure!(is_marked, "{seen:?}");
        Ok(())
    })
    .await?;
    leader.kill()?;
    let _successor = world.operator("operator-0")?;
    rebuilt(&world, &later, earlier).await
}

/// Waits until the leader has left the directory's position in the Lease.
async fn noted(world: &World) -> Result {
    until(world, "the position in the Lease", async || {
        let meta = world.observe().await?.meta.context("no directory")?;
        let position = format!("[{},{}]", meta.generation, meta.seq);
        let lease = world.get(LEASE)?;
        let noted = lease["metadata"]["annotations"][ANNOTATION].as_str();
        let is_noted = noted.is_some_and(|noted| noted.contains(&position));
        ensure!(is_noted, "{position}: {lease}");
        Ok(())
    })
    .await
}

/// Redis goes back while there is no leader, and the next one rebuilds the directory. A sweep, which withdraws the
/// revoked key after a minute, does not do: it begins no generation, and until then the key works.
async fn goes_back_unseen(world: &World, redis: &Redis, later: &[String], earlier: u64) -> Result {
    redis.command(&["EVAL", BRING_BACK, "0"]).await?;
    assert_eq!(world.published().await?.len(), later.len() + 1);
    let _next = world.operator("operator-0")?;
    rebuilt(world, later, earlier).await?;
    event(world, API, "DirectoryRebuilt").await
}

#[tokio::test]
async fn an_earlier_state_that_comes_back_after_a_leader_was_killed_is_not_believed() -> Result {
    let (redis, world, leader) = World::on_own_redis("earlier-killed").await?;
    // Before its status names the Redis, a directory is rebuilt by every leader.
    world.synced().await?;
    world.in_force(&brought("first", '0')).await?;
    let (later, earlier) = revoked_since(&world, &redis, '6').await?;
    noted(&world).await?;
    leader.kill()?;
    goes_back_unseen(&world, &redis, &later, earlier).await
}

#[tokio::test]
async fn an_earlier_state_that_comes_back_after_a_leader_has_stopped_is_not_believed_and_the_last_one_is()
-> Result {
    let (redis, world, leader) = World::on_own_redis("earlier-stopped").await?;
    world.synced().await?;
    world.in_force(&brought("first", '0')).await?;
    let before = generation(&world).await?;
    leader.stop(PATIENCE).await?;
    let leader = world.operator("operator-0")?;
    // The directory stands where the Lease says.
    world.in_force(&brought("second", '1')).await?;
    assert_eq!(generation(&world).await?, before, "{}", leader.log_end());

    let (later, earlier) = revoked_since(&world, &redis, '6').await?;
    leader.stop(PATIENCE).await?;
    given_back(&world, &leader.log())?;
    if world.get(LEASE)?["spec"]["holderIdentity"] != "" {
        // The release, which notes the revocation, was not answered in time.
        return Ok(());
    }
    goes_back_unseen(&world, &redis, &later, earlier).await
}

#[tokio::test]
async fn an_earlier_state_brings_no_revoked_key_of_an_unreadable_apikey_back() -> Result {
    let (redis, world, _operator) = World::on_own_redis("earlier-unreadable").await?;
    world.in_force(&brought("comma", '1')).await?;
    redis.command(&["EVAL", KEEP, "0"]).await?;
    let mut replaced = brought("comma", '2');
    replaced["spec"]["rotation"] = json!({ "overlapSeconds": 0 });
    world.apply(&replaced)?;
    let active = "222222222222 Enterprise Active".to_owned();
    holds(&world, &[&active]).await?;
    spoil(&world, "comma").await?;
    let earlier = generation(&world).await?;
    redis.command(&["EVAL", BRING_BACK, "0"]).await?;
    rebuilt(&world, &[active], earlier).await
}
