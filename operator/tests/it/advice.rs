//! Tests of problems of a directory that is in order: reported by a condition and an event, once; and of one that is
//! another's.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_harness::{Clock, Redis};

use crate::Result;
use crate::gate::{GRACE, Gate, Started, end_pod, pod};
use crate::steps::{OBJECT, becomes, event, follow, ready, says, stalled, until};
use crate::store_refusals::{USER, with_user};
use crate::world::{API, World, api, brought, shown};

/// Seconds by which Redis' clock is put ahead: most of the time that a gate has for its first lease, and not so much
/// that the clock counts as wrong.
const AHEAD: i64 = 50;

/// The types of the events about the WaterDataApi with that reason.
fn types(world: &World, reason: &str) -> anyhow::Result<Vec<String>> {
    let selector = format!("--field-selector=involvedObject.name={API},reason={reason}");
    let list = world.kubectl(&["get", "events", &selector, "--output=json"])?;
    let list: Value = serde_json::from_str(&list)?;
    let events = list["items"].as_array().context("a list")?.iter();
    // One that was reported again would be counted up.
    let is_single = events.clone().all(|event| event["series"].is_null());
    ensure!(is_single, "{list}");
    let types = events.map(|event| event["type"].as_str().unwrap_or_default().to_owned());
    Ok(types.collect())
}

async fn told(world: &World, reason: &str) -> Result {
    until(world, "the event", async || {
        let types = types(world, reason)?;
        ensure!(types == ["Warning"], "{types:?}");
        Ok(())
    })
    .await
}

async fn warned(world: &World, reason: &str) -> Result {
    let synced = format!("True/{reason}");
    world.condition(OBJECT, "DirectorySynced", &synced).await?;
    told(world, reason).await
}

#[tokio::test]
async fn a_redis_that_may_lose_keys_or_cannot_be_asked_is_warned_of_until_that_is_mended() -> Result
{
    let (redis, world, _operator) = with_user("advised-store").await?;
    let set = async |name, value| redis.command(&["CONFIG", "SET", name, value]).await;
    set("maxmemory-policy", "allkeys-lru").await?;
    warned(&world, "EvictionAllowed").await?;
    set("maxmemory-policy", "noeviction").await?;
    world.synced().await?;
    let replica = Redis::start().await?;
    follow(&world, &replica, &redis).await?;
    warned(&world, "ReplicasUnguarded").await?;
    set("min-replicas-to-write", "1").await?;
    set("min-replicas-max-lag", "5").await?;
    world.synced().await?;
    let less = ["ACL", "SETUSER", USER, "-acl|dryrun"];
    redis.command(&less).await?;
    warned(&world, "Unverified").await
}

#[tokio::test]
async fn a_gates_user_that_is_unknown_or_could_make_keys_is_warned_of_beside_plans_that_differ()
-> Result {
    let (world, _operator) = World::running("advised-gate").await?;
    world.synced().await?;
    let user = |url: &str| {
        let url = json!({ "stringData": { "gate-url": url } });
        world.patch("secret/redis", &url, &[])
    };
    user(&world.redis_url.replace("://", "://nobody:password@"))?;
    warned(&world, "Unverified").await?;
    // The default user may do everything.
    user(&world.redis_url)?;
    warned(&world, "GateMayWrite").await?;
    let mut free = brought("free", '6');
    free["spec"]["plan"] = "Free".into();
    world.apply(&free)?;
    world.apply(&brought("paid", '7'))?;
    told(&world, "PlansDiffer").await?;
    assert_eq!(types(&world, "GateMayWrite")?, ["Warning"]);
    Ok(())
}

/// Reports a ready pod as ready for years.
fn settle(world: &World, name: &str) -> Result {
    let since = "2020-01-01T00:00:00Z";
    let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": since });
    let status = json!({ "status": { "conditions": [ready] } });
    world.patch(&format!("pod/{name}"), &status, &["--subresource=status"])
}

#[tokio::test]
async fn a_gate_that_serves_without_a_lease_is_named_and_warned_of_until_its_pod_is_gone() -> Result
{
    let clock = Clock::new()?;
    let redis = Redis::start_on(&clock).await?;
    let world = World::with_redis("advised-lease", &redis.url()).await?;
    world.apply(&api())?;
    let _operator = world.operator("operator-0")?;
    world.synced().await?;
    let _gate = Gate::start(&world, "gate-0", GRACE).await?;
    pod(&world, "stray", true, Started::Before)?;
    settle(&world, "gate-0")?;
    settle(&world, "stray")?;
    clock.set(AHEAD)?;
    let without_lease = "Degraded=True/GateWithoutLease";
    // The gate that follows the directory is not named.
    let named = "revoked keys may work there: stray;";
    says(&world, OBJECT, without_lease, named).await?;
    event(&world, API, "GateWithoutLease").await?;
    end_pod(&world, "stray")?;
    becomes(&world, OBJECT, "rid of the stray", |found| {
        !shown(found, "Degraded").contains("GateWithoutLease")
    })
    .await
    .map(drop)
}

#[tokio::test]
async fn a_directory_of_another_namespace_is_named_and_taken_over_when_asked() -> Result {
    let world = World::new("advised-owner").await?;
    let directory = world.directory()?;
    let (owner, its_api) = ("uid-of-another", "uid-of-its-api");
    let claim = async || anyhow::Ok(directory.claim(owner, its_api, None).await?);
    until(&world, "the other's claim", claim).await?;
    world.apply(&api())?;
    world.apply(&brought("acme", '9'))?;
    let _operator = world.operator("operator-0")?;
    let annotation = "annotate it with waterdata.dev/take-over: uid-of-another";
    let found = says(&world, OBJECT, "Stalled=True/DirectoryOwned", annotation).await?;
    assert_eq!(shown(&found, "DirectorySynced"), "False/DirectoryOwned");
    stalled(&world, "acme", "DirectoryOwned").await?;
    let take_over = json!({ "waterdata.dev/take-over": owner });
    let take_over = json!({ "metadata": { "annotations": take_over } });
    world.patch(OBJECT, &take_over, &[])?;
    world.synced().await?;
    ready(&world, "acme", "True/Active").await.map(drop)
}
