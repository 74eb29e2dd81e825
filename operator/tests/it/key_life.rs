//! A key's life as its owner sees it: Secret, status, events, and what the directory holds meanwhile.

mod measurements;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio::try_join;
use water_domain::{KeyPrefix, PlainKey};
use water_harness::Process;

use crate::Result;
use crate::audit::restart_writes_nothing;
use crate::gate::{GRACE, Gate};
use crate::installation::complete;
use crate::steps::{
    NOTHING, OBJECT, becomes, delete, edit, event, holds, logs, message, ready, revoke,
    secret_value, stalled,
};
use crate::world::{API, World, api, brought, key, shown};

#[tokio::test]
async fn a_key_is_issued_suspended_resumed_and_revoked() -> Result {
    let (world, operator) = World::running("key-life").await?;
    let issued = world.in_force(&key("acme")).await?;
    let status = &issued["status"];
    let id = status["keyId"].as_str().context("a key id")?;
    holds(&world, &[format!("{id} Enterprise Active")]).await?;

    // The Secret alone has the text.
    let text = secret_value(&world, "api-key")?;
    let plain = PlainKey::parse(text.as_bytes(), &KeyPrefix::default())?;
    assert_eq!(status["current"]["hash"], plain.hash().to_string());
    assert_eq!(secret_value(&world, "key-id")?, id);
    assert_eq!(secret_value(&world, "base-url")?, "http://water.example");
    assert!(!issued.to_string().contains(&text));
    let selector = "--selector=waterdata.dev/account=acme";
    let labelled = world.kubectl(&["get", "apikeys,secrets", selector, "--output=name"])?;
    assert_eq!(labelled, "apikey.waterdata.dev/acme\nsecret/acme-apikey");

    edit(&world, "acme", &json!({ "suspend": true, "plan": "Free" }))?;
    ready(&world, "acme", "True/Suspended").await?;
    holds(&world, &[format!("{id} Free Suspended")]).await?;
    edit(&world, "acme", &json!({ "suspend": false }))?;
    ready(&world, "acme", "True/PlanWithoutAccess").await?;
    revoke(&world, "acme").await?;
    holds(&world, &NOTHING).await?;
    let events = [
        "KeyIssued",
        "PlanChanged",
        "KeySuspended",
        "KeyResumed",
        "KeyRevoked",
    ];
    world.told("acme", &events).await?;
    // An event is logged once the API server has it.
    for line in events.iter().chain(&["declared the keys of an ApiKey"]) {
        logs(&world, &operator, line).await?;
    }
    assert!(!operator.log().contains(&text));
    assert_eq!(sorted_events(&world)?, events);
    Ok(())
}

/// Reasons of the events about ApiKeys, sorted as people sort them. Fails unless each event says that it happened once,
/// and when.
fn sorted_events(world: &World) -> anyhow::Result<Vec<String>> {
    let options = [
        "--field-selector=involvedObject.kind=ApiKey",
        "--sort-by=.lastTimestamp",
        "--output=json",
    ];
    let list = world.kubectl(&[&["get", "events"][..], &options].concat())?;
    let list: Value = serde_json::from_str(&list)?;
    let reason = |event: &Value| -> anyhow::Result<String> {
        let second = |field: &str| event[field].as_str()?.get(..19).map(str::to_owned);
        let time = second("eventTime").context("a time")?;
        for field in ["firstTimestamp", "lastTimestamp"] {
            ensure!(second(field).as_ref() == Some(&time), "{field}: {event}");
        }
        ensure!(event["count"] == 1, "{event}");
        Ok(event["reason"].as_str().context("a reason")?.to_owned())
    };
    let events = list["items"].as_array().context("a list")?;
    events.iter().map(reason).collect()
}

/// A brought key that leaves a replaced hash no overlap.
fn cut(digit: char) -> Value {
    let mut key = brought("partner", digit);
    key["spec"]["rotation"] = json!({ "overlapSeconds": 0 });
    key
}

/// Applies a brought key and waits until the directory holds its hash alone, which is in force.
async fn takes_over(world: &World, key: &Value) -> Result {
    world.apply(key)?;
    let hash = &key["spec"]["material"]["hash"]["sha256"];
    becomes(world, "apikey/partner", "in force with its hash", |found| {
        let current = &found["status"]["current"]["hash"];
        shown(found, "Ready") == "True/Active" && current == hash
    })
    .await?;
    let id = &hash.as_str().context("a hash")?[..12];
    holds(world, &[format!("{id} Enterprise Active")]).await
}

/// Applies hash a, which was revoked, and returns it with the annotation that the status then reports.
async fn remedy(world: &World, revoked: &Value) -> anyhow::Result<Value> {
    world.apply(revoked)?;
    let found = stalled(world, "partner", "RevokedInStore").await?;
    holds(world, &NOTHING).await?;
    let words = message(&found, "Stalled");
    let (_, remedy) = words
        .split_once("waterdata.dev/reinstate: ")
        .context("a remedy")?;
    let (remedy, _) = remedy.split_once(' ').context("its end")?;
    assert!(remedy.starts_with("aaaaaaaaaaaa@20"), "{remedy}");
    let mut key = cut('a');
    key["metadata"]["annotations"] = json!({ "waterdata.dev/reinstate": remedy });
    Ok(key)
}

#[tokio::test]
async fn a_replaced_hash_is_revoked_until_an_annotation_lifts_that_tombstone_and_no_later_one()
-> Result {
    let (world, _operator) = World::running("key-hash").await?;
    takes_over(&world, &cut('a')).await?;
    takes_over(&world, &cut('b')).await?;
    let lifted = remedy(&world, &cut('a')).await?;
    takes_over(&world, &lifted).await?;
    // The annotation is left in the manifest.
    let mut third = lifted.clone();
    third["spec"]["material"] = cut('c')["spec"]["material"].clone();
    takes_over(&world, &third).await?;
    takes_over(&world, &remedy(&world, &lifted).await?).await?;
    let told = [
        "KeyIssued",
        "KeyRotated",
        "RevokedInStore",
        "KeyReinstated",
        "KeyRotated",
        "KeyRotated",
        "RevokedInStore",
        "KeyReinstated",
        "KeyRotated",
    ];
    world.told("partner", &told).await
}

/// Time after which time acts.
const SOON: Duration = Duration::from_secs(15);

/// Waits until an ApiKey is as time makes it [`SOON`] after `since`. It must not be so much earlier: a gate's reading
/// of Redis' time may be a little late.
async fn changes(
    world: &World,
    name: &str,
    since: Instant,
    is_changed: impl Fn(&Value) -> bool,
) -> Result {
    becomes(world, &format!("apikey/{name}"), "changed", is_changed).await?;
    let after = since.elapsed();
    ensure!(after >= SOON / 2, "{name} changed after {after:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_acts_though_nobody_asks_for_another_look() -> Result {
    let (world, _operator) = World::running("key-alone").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let begun = Instant::now();
    let boundary = gate.now().context("Redis' time")?.plus(SOON).to_string();
    let mut begins = brought("begins", '0');
    begins["spec"]["notBefore"] = boundary.as_str().into();
    let mut ends = brought("ends", '1');
    ends["spec"]["expirationTime"] = boundary.into();
    world.apply(&begins)?;
    world.apply(&ends)?;
    let mut rotated = brought("rotated", '2');
    rotated["spec"]["rotation"] = json!({ "overlapSeconds": SOON.as_secs() });
    world.in_force(&rotated).await?;
    let hash = "3".repeat(64);
    rotated["spec"]["material"]["hash"]["sha256"] = hash.as_str().into();
    let replaced = Instant::now();
    world.apply(&rotated)?;
    // A busy machine may show none of them as it was before. Keys at rest are reconciled after 450 s at the earliest:
    // nobody waits for that here.
    let is = |wanted: &'static str| move |found: &Value| shown(found, "Ready") == wanted;
    let is_alone = |found: &Value| {
        let status = &found["status"];
        status["current"]["hash"] == hash.as_str() && status["previous"].is_null()
    };
    try_join!(
        changes(&world, "begins", begun, is("True/Active")),
        changes(&world, "ends", begun, is("False/Expired")),
        changes(&world, "rotated", replaced, is_alone),
    )
    .map(drop)
}

#[tokio::test]
async fn a_deletion_waits_for_redis_and_says_so() -> Result {
    let (redis, world, _operator) = World::on_own_redis("key-waits").await?;
    world.in_force(&key("acme")).await?;
    redis.pause()?;
    delete(&world, "acme")?;
    becomes(&world, "apikey/acme", "waiting for Redis", |found| {
        let words = "revoked as soon as that works";
        shown(found, "Ready") == "False/Deleting" && message(found, "Ready").contains(words)
    })
    .await?;
    redis.resume()?;
    world.gone("apikey/acme").await?;
    holds(&world, &NOTHING).await
}

/// A world that is rolled out, with two keys in force that a gate has, and nothing left to do.
async fn at_rest(namespace: &str) -> anyhow::Result<(World, Arc<Process>, Gate)> {
    let world = World::new(namespace).await?;
    let mut declared = api();
    // The API server leaves such a zero out, and keeps these quantities as 500m, 1Gi and 3G.
    declared["spec"]["rollout"] = json!({ "minReadySeconds": 0 });
    declared["spec"]["components"]["gate"]["resources"] = json!({
        "requests": { "cpu": "0.5", "memory": "1024Mi" }, "limits": { "memory": "3000000000" },
    });
    world.apply(&declared)?;
    let operator = world.operator("operator-0")?;
    complete(&world, "1.2.3").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    world.in_force(&brought("partner", 'e')).await?;
    world.in_force(&key("acme")).await?;
    let counted = |found: &Value| {
        let keys = &found["status"]["apiKeys"];
        keys["synced"] == 2 && keys["active"] == 2
    };
    becomes(&world, OBJECT, "told of both keys", counted).await?;
    world.condition(OBJECT, "Ready", "True/Complete").await?;
    // Events are written last, and one that its operator does not write before it ends the next one does.
    for name in ["partner", "acme"] {
        event(&world, name, "KeyIssued").await?;
    }
    event(&world, API, "RolloutComplete").await?;
    Ok((world, operator, gate))
}

#[tokio::test]
async fn a_restart_beside_all_there_is_writes_nothing() -> Result {
    let (world, operator, gate) = at_rest("key-restart").await?;
    gate.fall_silent();
    restart_writes_nothing(&world, &operator).await
}
