//! What somebody should know of a directory that is in order: told by a condition and an event, once.

use anyhow::ensure;
use serde_json::json;
use water_harness::Redis;

use crate::Result;
use crate::world::{API, PATIENCE, World, api, brought};

const OBJECT: &str = "waterdataapi/water-data";

async fn warned(world: &World, reason: &str) -> Result {
    let synced = format!("True/{reason}");
    world.condition(OBJECT, "DirectorySynced", &synced).await?;
    let told = async || {
        let events = world.events(API)?;
        let times = events.iter().filter(|event| *event == reason).count();
        ensure!(times == 1, "{events:?}");
        Ok(())
    };
    world.wait("the event", PATIENCE, told).await
}

#[tokio::test]
async fn a_gates_user_that_could_make_keys_is_warned_of() -> Result {
    let (world, _operator) = World::running("gate-may-write").await?;
    world
        .condition(OBJECT, "DirectorySynced", "True/Published")
        .await?;
    let default_user = json!({ "stringData": { "gate-url": world.redis_url } });
    world.patch("secret/redis", &default_user, &[])?;
    warned(&world, "GateMayWrite").await
}

#[tokio::test]
async fn a_redis_that_evicts_is_warned_of_until_it_does_not() -> Result {
    let redis = Redis::start().await?;
    let world = World::with_redis("evicting", &redis.url()).await?;
    world.apply(&api())?;
    redis
        .command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"])
        .await?;
    let _operator = world.operator("operator-0")?;
    warned(&world, "EvictionAllowed").await?;
    redis
        .command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"])
        .await?;
    world
        .condition(OBJECT, "DirectorySynced", "True/Published")
        .await?;
    Ok(())
}

#[tokio::test]
async fn keys_of_one_account_with_different_plans_are_warned_of() -> Result {
    let (world, _operator) = World::running("plans-differ").await?;
    let mut free = brought("free", '4');
    free["spec"]["plan"] = "Free".into();
    world.apply(&free)?;
    world.apply(&brought("paid", '5'))?;
    warned(&world, "PlansDiffer").await
}
