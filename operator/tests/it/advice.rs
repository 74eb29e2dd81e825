//! What somebody should know of a directory that is in order: told by a condition and an event, once.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_harness::Redis;

use crate::Result;
use crate::store_refusals::{USER, with_user};
use crate::world::{API, PATIENCE, World, api, brought};

const OBJECT: &str = "waterdataapi/water-data";

/// The types of the events about the WaterDataApi with that reason.
fn types(world: &World, reason: &str) -> anyhow::Result<Vec<String>> {
    let selector = format!("--field-selector=involvedObject.name={API},reason={reason}");
    let list = world.kubectl(&["get", "events", &selector, "--output=json"])?;
    let list: Value = serde_json::from_str(&list)?;
    let events = list["items"].as_array().context("a list")?.iter();
    // One that was told again would be counted up.
    ensure!(
        events.clone().all(|event| event["series"].is_null()),
        "{list}"
    );
    let types = events.map(|event| event["type"].as_str().unwrap_or_default().to_owned());
    Ok(types.collect())
}

async fn warned(world: &World, reason: &str) -> Result {
    let synced = format!("True/{reason}");
    world.condition(OBJECT, "DirectorySynced", &synced).await?;
    let told = async || {
        let types = types(world, reason)?;
        ensure!(types == ["Warning"], "{types:?}");
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

#[tokio::test]
async fn an_operators_user_that_may_not_ask_is_warned_of() -> Result {
    let (redis, world, _operator) = with_user("unverified").await?;
    redis
        .command(&["ACL", "SETUSER", USER, "-acl|dryrun"])
        .await?;
    warned(&world, "Unverified").await
}

#[tokio::test]
async fn a_gates_user_that_redis_does_not_know_is_warned_of() -> Result {
    let (world, _operator) = World::running("unknown-gate").await?;
    world.synced().await?;
    let unknown = world.redis_url.replace("://", "://nobody:password@");
    let unknown = json!({ "stringData": { "gate-url": unknown } });
    world.patch("secret/redis", &unknown, &[])?;
    warned(&world, "Unverified").await
}

#[tokio::test]
async fn another_advice_is_told_of_beside_a_worse_one() -> Result {
    let (world, _operator) = World::running("advised-twice").await?;
    let default_user = json!({ "stringData": { "gate-url": world.redis_url } });
    world.patch("secret/redis", &default_user, &[])?;
    warned(&world, "GateMayWrite").await?;
    let mut free = brought("free", '6');
    free["spec"]["plan"] = "Free".into();
    world.apply(&free)?;
    world.apply(&brought("paid", '7'))?;
    let told = async || {
        let types = types(&world, "PlansDiffer")?;
        ensure!(types == ["Warning"], "{types:?}");
        Ok(())
    };
    world.wait("the event", PATIENCE, told).await?;
    assert_eq!(types(&world, "GateMayWrite")?, ["Warning"]);
    Ok(())
}
