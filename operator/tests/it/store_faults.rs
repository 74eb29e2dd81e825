//! Redis loses what it held, or goes back in time: the directory is rebuilt from the cluster under a
//! new generation, within seconds. `faults/store.rs` has dumps and promoted replicas, `faults/store/long.rs`
//! evictions amid changes.

mod measurements;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::ensure;
use serde_json::json;
use water_harness::{Process, Redis};
use water_keystore::Origin;

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::steps::{
    OBJECT, becomes, edit, event, generation, look_again, prefix, ready, rebuilt, revoke, until,
};
use crate::world::{PATIENCE, World, brought, key, shown};

/// A world on a separate Redis, with a generated and a brought key in force.
async fn with_keys(namespace: &str) -> anyhow::Result<(Redis, World, Arc<Process>)> {
    let (redis, world, operator) = World::on_own_redis(namespace).await?;
    world.in_force(&key("acme")).await?;
    world.in_force(&brought("partner", 'a')).await?;
    Ok((redis, world, operator))
}

#[tokio::test]
async fn fault_23_a_redis_that_came_back_empty_is_filled_though_keys_said_it_was_away() -> Result {
    let (redis, world, _operator) = with_keys("fault-empty").await?;
    let (before, earlier) = (world.published().await?, generation(&world).await?);
    redis.kill()?;
    let away = "False/StoreUnavailable";
    world.condition(OBJECT, "DirectorySynced", away).await?;
    // A pass over a key while Redis is away leaves a status that says so. Gates serve it meanwhile.
    for object in ["apikey/acme", "apikey/partner"] {
        look_again(&world, object, "away")?;
        let unknown = "Unknown/StoreUnavailable";
        let found = world.condition(object, "Synced", unknown).await?;
        ensure!(shown(&found, "Ready") == "True/Active", "{found}");
    }
    redis.start_again().await?;
    rebuilt(&world, &before, earlier).await?;
    event(&world, "water-data", "DirectoryRebuilt").await?;
    // They were Ready all the time: that Redis holds them again is what changes.
    for object in ["apikey/acme", "apikey/partner"] {
        becomes(&world, object, "held by Redis again", |found| {
            let is_held = shown(found, "Synced") == "True/Published";
            is_held && shown(found, "Ready") == "True/Active"
        })
        .await?;
    }
    Ok(())
}

/// Content of the directory about keys, their owners, and plans.
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
    let pattern = format!("{}{kind}*", prefix(world));
    let evict = "local keys = redis.call('KEYS', ARGV[1]) return redis.call('DEL', unpack(keys))";
    let evicted = redis.command(&["EVAL", evict, "0", &pattern]).await?;
    ensure!(evicted.starts_with(':') && evicted != ":0\r\n", "{evicted}");
    Ok(())
}

#[tokio::test]
async fn fault_25_keys_come_and_go_whatever_else_is_evicted_and_it_is_there_again() -> Result {
    let (redis, world, _operator) = with_keys("fault-evicted-others").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let (before, published) = (contents(&world).await?, world.published().await?);
    let prefix = prefix(&world);
    // First it is one that nobody can read.
    let earlier = generation(&world).await?;
    redis
        .command(&["SET", &format!("{prefix}meta"), "{"])
        .await?;
    rebuilt(&world, &published, earlier).await?;
    let (used, in_2100) = (format!("{prefix}used"), "4102444800000");
    redis
        .command(&["ZADD", &used, in_2100, "aaaaaaaaaaaa"])
        .await?;
    for (kind, digit) in ["meta", "plans", "feed", "gates", "used"]
        .into_iter()
        .zip('b'..)
    {
        evict(&redis, &world, kind).await?;
        world.in_force(&brought("later", digit)).await?;
        assert!(gate.accepts(&digit.to_string().repeat(64))?, "{kind}");
        revoke(&world, "later").await?;
        assert_eq!(gate.keys(), 2, "{kind}");
        until(&world, kind, async || {
            generation(&world).await?;
            let after = contents(&world).await?;
            ensure!(after == before, "{kind}: before {before}\nafter {after}");
            let leases = world.directory()?.leases().await?;
            ensure!(!leases.gates.is_empty(), "{kind}: no gate");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Waits until the directory has these contents again, under a later generation than that.
async fn restored(world: &World, evicted: &str, before: &str, earlier: u64) -> Result {
    until(world, &format!("{evicted} to be restored"), async || {
        let now = generation(world).await?;
        ensure!(now > earlier, "still generation {now}");
        let after = contents(world).await?;
        ensure!(after == before, "before {before}\nafter {after}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn fault_25_a_change_that_meets_an_eviction_is_made_and_restores_all() -> Result {
    let (redis, world, _operator) = with_keys("fault-evicted-changed").await?;
    world.in_force(&brought("former", 'f')).await?;
    revoke(&world, "former").await?;
    let before = contents(&world).await?;
    // Evicted revocations are lost, since nobody else knows them; all else is there again.
    for kind in ["records:", "owners:", "held:", "revoked"] {
        let earlier = generation(&world).await?;
        evict(&redis, &world, kind).await?;
        for (suspend, wanted) in [(true, "True/Suspended"), (false, "True/Active")] {
            edit(&world, "partner", &json!({ "suspend": suspend }))?;
            ready(&world, "partner", wanted).await?;
        }
        restored(&world, kind, &before, earlier).await?;
    }
    Ok(())
}

#[tokio::test]
async fn fault_25_owners_that_are_evicted_are_missed_soon_after_a_leadership_begins() -> Result {
    let (redis, world, operator) = with_keys("fault-evicted-owners").await?;
    let (before, earlier) = (contents(&world).await?, generation(&world).await?);
    operator.stop(PATIENCE).await?;
    // No pass over a key that rests reads them: they are counted.
    evict(&redis, &world, "owners:").await?;
    operator.start_again()?;
    restored(&world, "owners", &before, earlier).await
}
