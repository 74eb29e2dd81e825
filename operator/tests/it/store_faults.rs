//! Redis loses what it held, or goes back in time: the directory is rebuilt from the cluster under a
//! new generation, within seconds, and what was revoked stays out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use water_harness::{HttpClient, Process, Redis};
use water_keystore::Origin;

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::sweep::strip;
use crate::world::{PATIENCE, World, api, brought, key};

/// A world on a Redis of its own, with a generated and a brought key in force.
async fn with_keys(namespace: &str) -> anyhow::Result<(Redis, World, Arc<Process>)> {
    let (redis, world, operator) = World::on_own_redis(namespace).await?;
    for key in [key("acme"), brought("partner", 'a')] {
        world.apply(&key)?;
    }
    for name in ["acme", "partner"] {
        world
            .condition(&format!("apikey/{name}"), "Ready", "True/Active")
            .await?;
    }
    Ok((redis, world, operator))
}

pub async fn generation(world: &World) -> anyhow::Result<u64> {
    let seen = world.observe().await?;
    let meta = seen.verified().map(|meta| meta.generation);
    meta.ok_or_else(|| anyhow::anyhow!("the directory is not whole: {seen:?}"))
}

/// Waits until the directory holds exactly this, under a later generation than that.
pub async fn rebuilt(world: &World, published: &[String], earlier: u64) -> Result {
    let whole = async || {
        let now = generation(world).await?;
        ensure!(now > earlier, "still generation {now}");
        let found = world.published().await?;
        ensure!(found == published, "{found:?}");
        Ok(())
    };
    world.wait("the rebuild", PATIENCE, whole).await?;
    let told = async || {
        let events = world.events("water-data")?;
        ensure!(
            events.iter().any(|event| event == "DirectoryRebuilt"),
            "{events:?}"
        );
        Ok(())
    };
    world.wait("the event of the rebuild", PATIENCE, told).await
}

#[tokio::test]
async fn a_flushed_directory_is_rebuilt() -> Result {
    let (redis, world, _operator) = with_keys("fault-flushed").await?;
    let (before, earlier) = (world.published().await?, generation(&world).await?);
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    redis.command(&["FLUSHALL"]).await?;
    rebuilt(&world, &before, earlier).await?;
    assert_eq!(gate.keys(), 2);
    Ok(())
}

#[tokio::test]
async fn a_redis_that_came_back_empty_is_filled_though_keys_said_it_was_away() -> Result {
    let (redis, world, _operator) = with_keys("fault-empty").await?;
    let (before, earlier) = (world.published().await?, generation(&world).await?);
    redis.kill()?;
    world
        .condition(
            "waterdataapi/water-data",
            "DirectorySynced",
            "False/StoreUnavailable",
        )
        .await?;
    // A pass over a key while Redis is away leaves a status that says so.
    for name in ["acme", "partner"] {
        world.kubectl(&["annotate", "apikey", name, "looked-at=again"])?;
        world
            .condition(
                &format!("apikey/{name}"),
                "Synced",
                "False/StoreUnavailable",
            )
            .await?;
    }
    redis.start_again().await?;
    rebuilt(&world, &before, earlier).await?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    Ok(())
}

#[tokio::test]
async fn an_old_dump_brings_no_revoked_key_back_and_loses_no_new_one() -> Result {
    let (redis, world, _operator) = with_keys("fault-dump").await?;
    redis.command(&["SAVE"]).await?;
    world.kubectl(&["delete", "apikey", "partner"])?;
    world.in_force(&brought("later", 'b')).await?;
    let (before, earlier) = (world.published().await?, generation(&world).await?);
    redis.kill()?;
    redis.start_again().await?;
    rebuilt(&world, &before, earlier).await
}

#[tokio::test]
async fn a_promoted_replica_is_rebuilt() -> Result {
    let (redis, world, _operator) = with_keys("fault-promoted").await?;
    let (before, earlier) = (world.published().await?, generation(&world).await?);
    let replica = Redis::start().await?;
    let address = ["127.0.0.1", &redis.port().to_string()].map(str::to_owned);
    replica
        .command(&["REPLICAOF", &address[0], &address[1]])
        .await?;
    let copied = async || {
        let info = replica.command(&["INFO", "replication"]).await?;
        ensure!(info.contains("master_link_status:up"), "{info}");
        Ok(())
    };
    world.wait("the replica's copy", PATIENCE, copied).await?;
    // Where the primary was there is now its replica, which then becomes the primary.
    replica.command(&["REPLICAOF", "NO", "ONE"]).await?;
    redis
        .command(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()])
        .await?;
    redis.command(&["REPLICAOF", "NO", "ONE"]).await?;
    rebuilt(&world, &before, earlier).await
}

#[tokio::test]
async fn a_meta_that_nobody_can_read_is_told_of_and_rebuilt() -> Result {
    let (redis, world, _operator) = with_keys("fault-meta").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let (before, earlier) = (world.published().await?, generation(&world).await?);
    let meta = format!("wd:{{{}.water-data}}:meta", world.namespace);
    redis.command(&["SET", &meta, "{"]).await?;
    rebuilt(&world, &before, earlier).await?;
    world.in_force(&brought("later", 'b')).await?;
    assert!(gate.accepts(&"b".repeat(64))?);
    Ok(())
}

#[tokio::test]
async fn a_rebuild_brings_no_key_back_whose_apikey_vanished_while_a_gate_was_awaited() -> Result {
    let (redis, world, operator) = World::on_own_redis("fault-vanished").await?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    gate.fall_silent();
    world.apply(&brought("acme", 'a'))?;
    world
        .condition("apikey/acme", "Ready", "False/AwaitingGates")
        .await?;
    // Without its finalizer no pass sees its end.
    operator.signal(Signal::SIGSTOP)?;
    strip(&world, "acme").await?;
    operator.signal(Signal::SIGCONT)?;
    let earlier = generation(&world).await?;
    redis.command(&["FLUSHALL"]).await?;
    rebuilt(&world, &[], earlier).await
}

/// Everything that the directory says of keys, of their owners, and of plans.
async fn contents(world: &World) -> anyhow::Result<String> {
    let directory = world.directory()?;
    let stored: BTreeMap<_, _> = directory.stored().await?.into_iter().collect();
    let owners = stored.values().flat_map(|stored| &stored.owner);
    let uids: BTreeSet<_> = owners.map(|owner| &owner.uid).collect();
    let mut held = BTreeMap::new();
    for uid in uids {
        let snapshot = directory.owner_snapshot(uid, &Origin::Generated, &[]);
        // A rebuild gives every owner another number.
        held.insert(uid, snapshot.await?.records);
    }
    let entries = directory.counts().await?.held;
    let plans = directory.plans().await?.into_iter();
    let plans: BTreeMap<_, _> = plans.map(|plan| (plan.name, plan.limits)).collect();
    Ok(format!("{stored:?} {entries} {held:?} {plans:?}"))
}

/// Redis evicts the keys whose names begin so.
async fn evict(redis: &Redis, world: &World, kind: &str) -> Result {
    let pattern = format!("wd:{{{}.water-data}}:{kind}*", world.namespace);
    let evict = "local keys = redis.call('KEYS', ARGV[1]) return redis.call('DEL', unpack(keys))";
    let evicted = redis.command(&["EVAL", evict, "0", &pattern]).await?;
    ensure!(evicted.starts_with(':') && evicted != ":0\r\n", "{evicted}");
    Ok(())
}

/// Redis evicts the keys whose names begin so. The operator misses them, and everything that the
/// cluster knows is there again.
async fn evicted(namespace: &str, kind: &str) -> Result {
    let (redis, world, operator) = with_keys(namespace).await?;
    world.in_force(&brought("former", 'f')).await?;
    world.kubectl(&["delete", "apikey", "former"])?;
    let (published, before) = (world.published().await?, contents(&world).await?);
    let earlier = generation(&world).await?;
    evict(&redis, &world, kind).await?;
    // What there is is counted once a minute, the first time soon after a leadership began.
    operator.stop(PATIENCE).await?;
    let _next = world.operator("operator-1")?;
    rebuilt(&world, &published, earlier).await?;
    let after = contents(&world).await?;
    ensure!(after == before, "before {before}\nafter {after}");
    Ok(())
}

#[tokio::test]
async fn evicted_records_are_missed_and_put_back() -> Result {
    evicted("fault-evicted-records", "records:").await
}

#[tokio::test]
async fn a_leader_misses_evicted_records_within_a_minute() -> Result {
    let (redis, world, _operator) = with_keys("fault-evicted-minute").await?;
    let (published, earlier) = (world.published().await?, generation(&world).await?);
    evict(&redis, &world, "records:").await?;
    let evicted = tokio::time::Instant::now();
    rebuilt(&world, &published, earlier).await?;
    // The count once a minute, and the rebuild.
    let took = evicted.elapsed();
    ensure!(took < Duration::from_secs(75), "{took:?}");
    Ok(())
}

#[tokio::test]
async fn evicted_owners_are_missed_and_put_back() -> Result {
    evicted("fault-evicted-owners", "owners:").await
}

#[tokio::test]
async fn an_evicted_index_of_what_owners_hold_is_missed_and_put_back() -> Result {
    evicted("fault-evicted-held", "held:").await
}

#[tokio::test]
async fn evicted_tombstones_are_missed() -> Result {
    evicted("fault-evicted-revoked", "revoked").await
}

#[tokio::test]
async fn keys_come_and_go_whatever_else_is_evicted_and_it_is_there_again() -> Result {
    let (redis, world, _operator) = with_keys("fault-evicted-others").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let before = contents(&world).await?;
    let used = "wd:{fault-evicted-others.water-data}:used";
    let in_2100 = "4102444800000";
    redis
        .command(&["ZADD", used, in_2100, "aaaaaaaaaaaa"])
        .await?;
    for (kind, digit) in [
        ("meta", 'b'),
        ("plans", 'c'),
        ("feed", 'd'),
        ("gates", 'e'),
        ("used", 'f'),
    ] {
        evict(&redis, &world, kind).await?;
        let later = brought("later", digit);
        world.in_force(&later).await?;
        assert!(gate.accepts(&digit.to_string().repeat(64))?, "{kind}");
        // The gate, which runs in this thread, has to follow.
        world.kubectl(&["delete", "apikey", "later", "--wait=false"])?;
        world.gone("apikey/later").await?;
        assert_eq!(gate.keys(), 2, "{kind}");
        let whole = async || {
            generation(&world).await?;
            let after = contents(&world).await?;
            ensure!(after == before, "{kind}: before {before}\nafter {after}");
            let leases = world.directory()?.leases().await?;
            ensure!(!leases.gates.is_empty(), "{kind}: no gate");
            Ok(())
        };
        world.wait(kind, PATIENCE, whole).await?;
    }
    Ok(())
}

/// Gives the world's namespace its account, or takes it away.
fn bind(world: &World, label: &str) -> Result {
    let label = format!("account.waterdata.dev/acme{label}");
    let words = ["label", "namespace", &world.namespace, &label];
    world.cluster.kubectl(&words).map(drop)
}

#[tokio::test]
async fn a_rebuild_asks_who_is_admitted_now_and_no_old_status() -> Result {
    let redis = Redis::start().await?;
    let world = World::with_redis("fault-readmitted", &redis.url()).await?;
    let mut bound = api();
    bound["spec"]["apiKeys"]["accountBinding"] = "NamespaceLabel".into();
    world.apply(&bound)?;
    bind(&world, "=")?;
    let operator = world.operator("operator-0")?;
    world.in_force(&brought("acme", 'a')).await?;
    bind(&world, "-")?;
    world.kubectl(&["annotate", "apikey", "acme", "looked-at=again"])?;
    world
        .condition("apikey/acme", "Stalled", "True/AccountNotBound")
        .await?;
    assert!(world.published().await?.is_empty());
    operator.stop(PATIENCE).await?;
    bind(&world, "=")?;
    redis.command(&["FLUSHALL"]).await?;
    let next = world.operator("operator-1")?;
    let rebuilt = async || {
        let log = next.log();
        let told = log
            .lines()
            .find(|line| line.contains("key directory rebuilt"));
        let told: Value = serde_json::from_str(told.context("no rebuild yet")?)?;
        Ok(told["records"].clone())
    };
    let records = world.wait("the rebuild", PATIENCE, rebuilt).await?;
    assert_eq!(records, 1, "{}", next.log_end());
    Ok(())
}

/// Where it serves its metrics, once its log says so.
pub async fn admin_address(world: &World, operator: &Process) -> anyhow::Result<String> {
    let told = async || {
        let log = operator.log();
        let admin = log.lines().find(|line| line.contains("\"port\":\"admin\""));
        let line: Value = serde_json::from_str(admin.context("no admin port yet")?)?;
        Ok(line["address"].as_str().context("an address")?.to_owned())
    };
    world
        .wait("the admin port in the log", PATIENCE, told)
        .await
}

/// What it measures.
pub async fn metrics(address: &str) -> anyhow::Result<String> {
    let mut client = HttpClient::connect(address).await?;
    Ok(client.get("/metrics", "").await?.text()?.to_owned())
}

/// Passes over ApiKeys until now.
async fn passes(address: &str) -> anyhow::Result<u64> {
    let metrics = metrics(address).await?;
    let of_keys = |line: &&str| line.starts_with("water_operator_passes_total{kind=\"ApiKey\"");
    let counts = metrics.lines().filter(of_keys);
    let counts = counts.map(|line| line.rsplit(' ').next().unwrap_or_default().parse::<u64>());
    Ok(counts.sum::<std::result::Result<u64, _>>()?)
}

#[tokio::test]
async fn keys_that_a_store_hinders_are_looked_at_less_and_less() -> Result {
    const KEYS: u64 = 12;
    /// Each waits 8 s and then 16 s after its sixth pass; with a fixed pause of 3 s two passes took
    /// 8 s at most.
    const TWO_MORE: Duration = Duration::from_secs(12);
    let (redis, world, operator) = World::on_own_redis("fault-damped").await?;
    // A replica of nobody takes no writes.
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]).await?;
    let address = admin_address(&world, &operator).await?;
    let before = passes(&address).await?;
    for digit in "0123456789ab".chars() {
        world.apply(&brought(&format!("key-{digit}"), digit))?;
    }
    let passes_of_each = async |count: u64| {
        let look = async || {
            let now = passes(&address).await?;
            ensure!(
                now >= before + count * KEYS,
                "{before} passes before, {now} now"
            );
            Ok(())
        };
        let what = format!("{count} passes of each key");
        world.wait(&what, PATIENCE, look).await
    };
    passes_of_each(6).await?;
    let begun = tokio::time::Instant::now();
    passes_of_each(8).await?;
    let took = begun.elapsed();
    assert!(took > TWO_MORE, "two more passes of each key in {took:?}");
    redis.command(&["REPLICAOF", "NO", "ONE"]).await?;
    for digit in "0123456789ab".chars() {
        world
            .condition(&format!("apikey/key-{digit}"), "Ready", "True/Active")
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn replicas_without_a_guard_are_warned_of() -> Result {
    let (redis, world, _operator) = with_keys("fault-unguarded").await?;
    let replica = Redis::start().await?;
    replica
        .command(&["REPLICAOF", "127.0.0.1", &redis.port().to_string()])
        .await?;
    world
        .condition(
            "waterdataapi/water-data",
            "DirectorySynced",
            "True/ReplicasUnguarded",
        )
        .await?;
    let told = async || {
        let events = world.events("water-data")?;
        ensure!(
            events.iter().any(|event| event == "ReplicasUnguarded"),
            "{events:?}"
        );
        Ok(())
    };
    world.wait("the event", PATIENCE, told).await?;
    redis
        .command(&["CONFIG", "SET", "min-replicas-to-write", "1"])
        .await?;
    redis
        .command(&["CONFIG", "SET", "min-replicas-max-lag", "5"])
        .await?;
    world.synced().await?;
    Ok(())
}
