//! A leader is lost between the announcement of a key and its Secret: what it may still reveal stays
//! published, and in the end exactly the revealed key is.

use std::sync::Arc;

use serde_json::{Value, json};
use water_domain::{KeyPrefix, PlainKey};
use water_harness::{Process, Redis};

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::turnover::{current, holds, successor, text_hash};
use crate::world::{PATIENCE, World, api, key};

/// A key whose announced hash waits for a silent gate, and the leader that has announced it.
async fn announced(namespace: &str, redis: &Redis) -> anyhow::Result<(World, Gate, Arc<Process>)> {
    let world = World::with_redis(namespace, &redis.url()).await?;
    world.apply(&api())?;
    let leader = world.operator("operator-0")?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    gate.fall_silent();
    world.apply(&key("acme"))?;
    holds(&world, 1).await?;
    Ok((world, gate, leader))
}

/// What the status announces, the lost leader's key last.
fn announcements(world: &World) -> anyhow::Result<(Value, Value)> {
    let status = &world.get("apikey/acme")?["status"];
    Ok((status["current"].clone(), status["unrevealed"][0].clone()))
}

fn record(announced: &Value) -> String {
    let id = announced["keyId"].as_str().unwrap_or_default();
    format!("{id} Enterprise Active")
}

/// A key as a status names it and as its Secret holds it.
fn a_key() -> (Value, PlainKey<'static>) {
    let plain = PlainKey::generate(&KeyPrefix::default(), &[7; 48]);
    let announced = json!({
        "revision": 0,
        "hash": plain.hash().to_string(),
        "keyId": plain.key_id().as_str(),
        "issuedTime": "2026-01-01T00:00:00.000Z",
    });
    (announced, plain)
}

/// Writes the Secret of an announced key, as the leader would have done that announced it.
fn reveal(world: &World, announced: &Value, plain: &PlainKey<'_>) -> Result {
    let uid = world.get("apikey/acme")?["metadata"]["uid"].clone();
    world.apply(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "acme-apikey",
            "labels": { "waterdata.dev/api-key": "acme" },
            "annotations": {
                "waterdata.dev/api-key-uid": uid,
                "waterdata.dev/key-hash": announced["hash"],
                "waterdata.dev/key-id": announced["keyId"],
                "waterdata.dev/revision": announced["revision"].to_string(),
                "waterdata.dev/issued-time": announced["issuedTime"],
            },
        },
        "stringData": { "api-key": plain.expose() },
    }))
}

#[tokio::test]
async fn what_a_lost_leader_announced_is_withdrawn_once_anothers_secret_stands() -> Result {
    let redis = Redis::start().await?;
    let (world, gate, leader) = announced("lost-withdrawn", &redis).await?;
    leader.stop(PATIENCE).await?;
    let _next = world.operator("operator-1")?;
    holds(&world, 2).await?;
    let (current, lost) = announcements(&world)?;
    assert_ne!(current, lost);
    gate.follow();
    let ready = world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    assert_eq!(ready["status"]["keyId"], current["keyId"]);
    assert_eq!(ready["status"]["unrevealed"], json!(null));
    assert_eq!(world.published().await?, [record(&current)]);
    assert_eq!(gate.keys(), 1);
    world.told("acme", &["KeyIssued"]).await?;
    Ok(())
}

#[tokio::test]
async fn a_leader_that_was_not_lost_reveals_a_key_that_works() -> Result {
    let redis = Redis::start().await?;
    let (world, gate, leader) = announced("lost-reveals", &redis).await?;
    leader.stop(PATIENCE).await?;
    // Another one announced a key before that, and is not lost but late.
    let (late, plain) = a_key();
    let status = json!({ "status": { "unrevealed": [late] } });
    world.patch("apikey/acme", &status, &["--subresource=status"])?;
    let _next = world.operator("operator-1")?;
    holds(&world, 3).await?;
    reveal(&world, &late, &plain)?;
    holds(&world, 1).await?;
    assert_eq!(world.published().await?, [record(&late)]);
    gate.follow();
    let ready = world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    assert_eq!(ready["status"]["keyId"], late["keyId"]);
    world.told("acme", &["KeyIssued"]).await?;
    Ok(())
}

#[tokio::test]
async fn a_rebuild_carries_what_a_lost_leader_announced() -> Result {
    let redis = Redis::start().await?;
    let (world, _gate, leader) = announced("lost-rebuild", &redis).await?;
    leader.stop(PATIENCE).await?;
    redis.command(&["FLUSHALL"]).await?;
    let _next = world.operator("operator-1")?;
    let both = holds(&world, 2).await?;
    let (current, lost) = announcements(&world)?;
    let mut wanted = [record(&current), record(&lost)];
    wanted.sort();
    assert_eq!(both, wanted);
    Ok(())
}

#[tokio::test]
async fn a_deletion_revokes_what_a_lost_leader_announced() -> Result {
    let redis = Redis::start().await?;
    let (world, gate, leader) = announced("lost-deleted", &redis).await?;
    leader.stop(PATIENCE).await?;
    let _next = world.operator("operator-1")?;
    holds(&world, 2).await?;
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    holds(&world, 0).await?;
    gate.follow();
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn a_withdrawn_key_that_comes_late_in_the_place_of_a_deleted_secret_is_replaced() -> Result {
    let redis = Redis::start().await?;
    let (world, gate, leader) = announced("lost-late", &redis).await?;
    leader.stop(PATIENCE).await?;
    // Another leader announced a key before that, and writes its Secret much later.
    let (late, plain) = a_key();
    let status = json!({ "status": { "unrevealed": [late] } });
    world.patch("apikey/acme", &status, &["--subresource=status"])?;
    let next = world.operator("operator-1")?;
    gate.follow();
    let ready = world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    let first = current(&ready)?;
    assert_ne!(first, plain.hash().to_string());
    holds(&world, 1).await?;
    next.stop(PATIENCE).await?;
    world.kubectl(&["delete", "secret", "acme-apikey"])?;
    reveal(&world, &late, &plain)?;
    let _last = world.operator("operator-2")?;
    let ready = successor(&world, &first).await?;
    let second = current(&ready)?;
    assert_ne!(second, plain.hash().to_string(), "it was withdrawn");
    assert_eq!(text_hash(&world)?, second);
    // The key that its owner may have read works on.
    assert_eq!(ready["status"]["previous"]["hash"], first.as_str());
    assert!(gate.accepts(&first)? && gate.accepts(&second)?);
    assert!(!gate.accepts(&plain.hash().to_string())?);
    world.told("acme", &["KeyIssued", "SecretReissued"]).await
}
