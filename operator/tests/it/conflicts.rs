//! What another owner has is never touched; the loser of a conflict takes over once it is free.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_domain::KeyHash;

use crate::Result;
use crate::world::{PATIENCE, World, api, brought, key};

/// A loser takes over within 5 s, and on a busy machine still before any other look at an ApiKey.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_foreign_secret_is_never_touched() -> Result {
    let (world, _operator) = World::running("foreign-secret").await?;
    let foreign = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "acme-apikey" },
        "stringData": { "api-key": "theirs" },
    });
    world.apply(&foreign)?;
    world.apply(&key("acme"))?;
    let stalled = world
        .condition("apikey/acme", "Stalled", "True/SecretConflict")
        .await?;
    let conditions = stalled["status"]["conditions"].as_array().unwrap();
    let secret = conditions
        .iter()
        .find(|condition| condition["type"] == "SecretReady")
        .unwrap();
    assert_eq!(
        secret["message"],
        "the Secret acme-apikey exists and is not this ApiKey's: delete it, or create another ApiKey with another \
         spec.material.generated.secretName"
    );
    assert_eq!(
        world.get("secret/acme-apikey")?["data"]["api-key"],
        "dGhlaXJz"
    );
    assert_eq!(world.published().await?, Vec::<String>::new());
    world.kubectl(&["delete", "secret", "acme-apikey"])?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    Ok(())
}

#[tokio::test]
async fn two_keys_with_one_secret_have_one_winner_and_the_loser_takes_over() -> Result {
    let (world, _operator) = World::running("one-secret").await?;
    world.in_force(&key("acme")).await?;
    let text = world.get("secret/acme-apikey")?["data"].clone();
    let mut second = key("second");
    second["spec"]["material"] = json!({ "generated": { "secretName": "acme-apikey" } });
    world.apply(&second)?;
    world
        .condition("apikey/second", "Stalled", "True/SecretConflict")
        .await?;
    assert_eq!(world.get("secret/acme-apikey")?["data"], text);
    assert_eq!(world.published().await?.len(), 1);
    world.kubectl(&["delete", "apikey", "acme"])?;
    // As the garbage collector does, which is not there.
    world.kubectl(&["delete", "secret", "acme-apikey"])?;
    let taken_over = async || {
        let secret = world.get("secret/acme-apikey")?;
        let owner = &secret["metadata"]["ownerReferences"][0]["name"];
        ensure!(owner == "second", "{owner}");
        Ok(())
    };
    world
        .wait("the loser to take over", SOON, taken_over)
        .await?;
    world
        .condition("apikey/second", "Ready", "True/Active")
        .await?;
    assert_ne!(world.get("secret/acme-apikey")?["data"], text);
    Ok(())
}

#[tokio::test]
async fn two_keys_with_one_hash_have_one_winner_and_the_loser_takes_over() -> Result {
    let (world, _operator) = World::running("one-hash").await?;
    world.in_force(&brought("first", '1')).await?;
    let mut second = brought("second", '1');
    second["spec"]["accountId"] = "other".into();
    world.apply(&second)?;
    let stalled = world
        .condition("apikey/second", "Stalled", "True/KeyConflict")
        .await?;
    assert!(
        !stalled["status"].to_string().contains("first"),
        "{stalled}"
    );
    // A loser that goes takes nothing with it.
    world.apply(&brought("third", '1'))?;
    world
        .condition("apikey/third", "Stalled", "True/KeyConflict")
        .await?;
    world.kubectl(&["delete", "apikey", "third"])?;
    assert_eq!(world.published().await?, ["111111111111 Enterprise Active"]);
    world.kubectl(&["delete", "apikey", "first"])?;
    let taken_over = async || {
        let stored = world.directory()?.stored().await?;
        let accounts: Vec<String> = stored
            .values()
            .filter_map(|stored| Some(stored.record.as_ref()?.account.to_string()))
            .collect();
        ensure!(accounts == ["other"], "{accounts:?}");
        Ok(())
    };
    world
        .wait("the loser to take over", SOON, taken_over)
        .await?;
    world
        .condition("apikey/second", "Ready", "True/Active")
        .await?;
    // Its own account's tombstone bars the winner.
    world.apply(&brought("first", '1'))?;
    world
        .condition("apikey/first", "Stalled", "True/RevokedInStore")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_key_without_an_api_waits_for_one() -> Result {
    let world = World::new("no-api").await?;
    let _operator = world.operator("operator-0")?;
    world.apply(&brought("acme", '2'))?;
    world
        .condition("apikey/acme", "Accepted", "False/ApiAmbiguous")
        .await?;
    world.apply(&api())?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_plan_that_is_gone_stalls_new_keys_with_the_remedy() -> Result {
    let (world, _operator) = World::running("no-plan").await?;
    let mut gold = brought("acme", '4');
    gold["spec"]["plan"] = "Gold".into();
    world.apply(&gold)?;
    world
        .condition("apikey/acme", "Stalled", "True/PlanUnknown")
        .await?;
    world.patch("apikey/acme", &json!({ "spec": { "plan": "Free" } }), &[])?;
    world
        .condition("apikey/acme", "Ready", "True/PlanWithoutAccess")
        .await?;
    Ok(())
}

#[tokio::test]
async fn two_keys_with_one_key_id_have_one_winner() -> Result {
    let (world, _operator) = World::running("one-key-id").await?;
    let named = |name: &str, digit: char| {
        let mut key = brought(name, digit);
        key["spec"]["material"]["hash"]["keyId"] = "AAAAbbbb0000".into();
        key
    };
    let first = world.in_force(&named("first", '5')).await?;
    assert_eq!(first["status"]["keyId"], "AAAAbbbb0000");
    world.apply(&named("second", '6'))?;
    let stalled = world
        .condition("apikey/second", "Stalled", "True/KeyConflict")
        .await?;
    let words = stalled["status"].to_string();
    assert!(
        words.contains("spec.material.hash.keyId is another ApiKey's"),
        "{words}"
    );
    assert_eq!(world.published().await?, ["AAAAbbbb0000 Enterprise Active"]);
    world.kubectl(&["delete", "apikey", "first"])?;
    world
        .condition("apikey/second", "Ready", "True/Active")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_hash_that_somebody_wrote_into_his_own_secret_is_not_revoked_with_it() -> Result {
    let (world, _operator) = World::running("forged-hash").await?;
    world.in_force(&key("forger")).await?;
    let marks = [
        "key-hash",
        "key-id",
        "revision",
        "issued-time",
        "retire-time",
    ];
    let values = ["7".repeat(64), "777777777777".into(), "0".into()];
    let times = ["2026-01-01T00:00:00.000Z", "2126-01-01T00:00:00.000Z"].map(str::to_owned);
    let forged = marks.into_iter().zip(values.into_iter().chain(times));
    let forged =
        forged.map(|(mark, value)| (format!("waterdata.dev/previous-{mark}"), value.into()));
    let forged: serde_json::Map<String, Value> = forged.collect();
    let forged = json!({ "metadata": { "annotations": forged } });
    world.patch("secret/forger-apikey", &forged, &[])?;
    world.kubectl(&["delete", "apikey", "forger"])?;
    world.in_force(&brought("honest", '7')).await?;
    Ok(())
}

#[tokio::test]
async fn a_rebuild_gives_an_older_key_no_hash_that_a_younger_one_had_first() -> Result {
    let (redis, world, operator) = World::on_own_redis("older-edited").await?;
    world.in_force(&brought("older", '1')).await?;
    // An ApiKey's age is told in whole seconds.
    let created = |object: &Value| object["metadata"]["creationTimestamp"].to_string();
    let older = created(&world.get("apikey/older")?);
    let has_passed = async || {
        let probe =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "probe" } });
        world.apply(&probe)?;
        let now = created(&world.get("configmap/probe")?);
        world.kubectl(&["delete", "configmap", "probe"])?;
        ensure!(now > older, "still {now}");
        Ok(())
    };
    world.wait("another second", PATIENCE, has_passed).await?;
    world.apply(&brought("younger", '2'))?;
    world
        .condition("apikey/younger", "Ready", "True/Active")
        .await?;
    world.apply(&brought("older", '2'))?;
    world
        .condition("apikey/older", "Stalled", "True/KeyConflict")
        .await?;
    operator.stop(PATIENCE).await?;
    redis.command(&["FLUSHALL"]).await?;
    let _next = world.operator("operator-1")?;
    let hash: KeyHash = "2".repeat(64).parse()?;
    let owner = async || {
        let mut stored = world.directory()?.stored().await?;
        let stored = stored.remove(&hash).context("no record yet")?;
        Ok(stored.owner.context("an owner")?.name)
    };
    let owner = world.wait("the rebuild", PATIENCE, owner).await?;
    assert_eq!(&*owner, "younger");
    Ok(())
}
