//! ApiKeys and Secrets that come back from a backup in another cluster, where all uids are new.

use anyhow::ensure;
use serde_json::{Value, json};
use water_harness::Process;

use crate::Result;
use crate::turnover::{SECRET, current, holds, text_hash};
use crate::world::{PATIENCE, World, key};

/// A Secret as a backup brings it: without what the API server gives.
fn backed_up(secret: &Value) -> Value {
    let metadata = &secret["metadata"];
    let (name, labels) = (&metadata["name"], &metadata["labels"]);
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": secret["type"], "data": secret["data"],
        "metadata": { "name": name, "labels": labels, "annotations": metadata["annotations"] },
    })
}

/// A key was in force; now there is another cluster with an empty Redis, the ApiKey and this Secret.
async fn restored(
    namespace: &str,
    key: Value,
    change: impl FnOnce(&mut Value),
) -> anyhow::Result<(World, Value, impl Sized)> {
    let (redis, world, operator) = World::on_own_redis(namespace).await?;
    let ready = world.in_force(&key).await?;
    let mut secret = backed_up(&world.get(SECRET)?);
    change(&mut secret);
    operator.kill()?;
    world.patch(
        "apikey/acme",
        &json!({ "metadata": { "finalizers": null } }),
        &[],
    )?;
    world.kubectl(&["delete", "apikey/acme", SECRET])?;
    redis.command(&["FLUSHALL"]).await?;
    world.apply(&secret)?;
    world.apply(&key)?;
    let operator: std::sync::Arc<Process> = world.operator("operator-1")?;
    Ok((world, ready, (redis, operator)))
}

#[tokio::test]
async fn a_restored_secret_is_adopted_and_its_key_works_again() -> Result {
    let (world, before, _rest) = restored("adopt", key("acme"), |_| {}).await?;
    let ready = world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    assert_eq!(current(&ready)?, current(&before)?);
    assert_eq!(text_hash(&world)?, current(&before)?);
    let uid = &ready["metadata"]["uid"];
    assert_ne!(uid, &before["metadata"]["uid"]);
    let metadata = &world.get(SECRET)?["metadata"];
    assert_eq!(&metadata["annotations"]["waterdata.dev/api-key-uid"], uid);
    assert_eq!(&metadata["ownerReferences"][0]["uid"], uid);
    let told = ["KeyIssued", "SecretAdopted", "KeyIssued"];
    world.told("acme", &told).await?;
    holds(&world, 1).await.map(drop)
}

#[tokio::test]
async fn a_restored_key_whose_period_is_over_is_replaced_once_it_is_adopted() -> Result {
    let mut rotating = key("acme");
    rotating["spec"]["rotation"] = json!({ "periodSeconds": 3600, "overlapSeconds": 0 });
    let (world, before, _rest) = restored("adopt-old", rotating, |secret| {
        secret["metadata"]["annotations"]["waterdata.dev/issued-time"] =
            "2026-01-01T00:00:00Z".into();
    })
    .await?;
    let adopted = current(&before)?;
    let replaced = async || {
        ensure!(text_hash(&world)? != adopted, "it is still there");
        Ok(())
    };
    world.wait("another key", PATIENCE, replaced).await?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    holds(&world, 1).await.map(drop)
}

#[tokio::test]
async fn a_restored_secret_with_another_text_or_of_another_apikey_is_foreign() -> Result {
    let (world, _, _rest) = restored("adopt-edited", key("acme"), |secret| {
        secret["data"]["api-key"] = "dGhlaXJz".into();
    })
    .await?;
    world
        .condition("apikey/acme", "Stalled", "True/SecretConflict")
        .await?;
    let mut other = key("other");
    other["spec"]["material"] = json!({ "generated": { "secretName": "acme-apikey" } });
    world.apply(&other)?;
    world
        .condition("apikey/other", "Stalled", "True/SecretConflict")
        .await?;
    assert_eq!(world.get(SECRET)?["data"]["api-key"], "dGhlaXJz");
    holds(&world, 0).await.map(drop)
}

#[tokio::test]
async fn a_retained_secret_of_a_revoked_key_is_not_adopted() -> Result {
    let (world, _operator) = World::running("adopt-revoked").await?;
    let mut retained = key("acme");
    retained["spec"]["material"] = json!({ "generated": { "deletionPolicy": "Retain" } });
    world.in_force(&retained).await?;
    world.kubectl(&["delete", "apikey", "acme"])?;
    world.apply(&retained)?;
    world
        .condition("apikey/acme", "Stalled", "True/SecretConflict")
        .await?;
    holds(&world, 0).await?;
    // Without it another key is issued.
    world.kubectl(&["delete", "secret", "acme-apikey"])?;
    world
        .wait("a key", PATIENCE, async || text_hash(&world))
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_secret_that_a_deleted_apikey_left_is_waited_for_until_it_is_collected() -> Result {
    let (world, _operator) = World::running("adopt-left").await?;
    let before = world.in_force(&key("acme")).await?;
    world.kubectl(&["delete", "apikey", "acme"])?;
    world.apply(&key("acme"))?;
    let waits = world
        .condition("apikey/acme", "SecretReady", "False/Waiting")
        .await?;
    let message = "the Secret acme-apikey of a deleted ApiKey of this name is still there";
    assert!(waits.to_string().contains(message), "{waits}");
    // The garbage collector, which is not there, comes at last.
    world.kubectl(&["delete", SECRET])?;
    let ready = world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    assert_ne!(current(&ready)?, current(&before)?);
    let told = world.events("acme")?;
    assert!(!told.contains(&"SecretConflict".into()), "{told:?}");
    holds(&world, 1).await.map(drop)
}
