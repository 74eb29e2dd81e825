//! Tests of conflicts: another owner's object is never touched; the loser of a conflict takes over once it is free.
//! `faults/conflicts.rs` has foreign Secrets and a hash that three ApiKeys name.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::Result;
use crate::steps::{NOTHING, becomes, delete, edit, holds, message, ready, revoke, stalled, until};
use crate::world::{World, api, brought, key};

#[tokio::test]
async fn fault_21_two_keys_with_one_secret_have_one_winner_and_the_loser_takes_over() -> Result {
    let (world, _operator) = World::running("one-secret").await?;
    world.in_force(&key("acme")).await?;
    let text = world.get("secret/acme-apikey")?["data"].clone();
    let mut second = key("second");
    second["spec"]["material"] = json!({ "generated": { "secretName": "acme-apikey" } });
    world.apply(&second)?;
    let loser = stalled(&world, "second", "SecretConflict").await?;
    assert_eq!(
        message(&loser, "SecretReady"),
        "the Secret acme-apikey exists and is not this ApiKey's: delete it, or create another ApiKey with another \
         spec.material.generated.secretName"
    );
    assert_eq!(world.get("secret/acme-apikey")?["data"], text);
    assert_eq!(world.published().await?.len(), 1);
    revoke(&world, "acme").await?;
    // As the garbage collector does, which is not there.
    world.kubectl(&["delete", "secret", "acme-apikey"])?;
    let taken_over = async || {
        let secret = world.get("secret/acme-apikey")?;
        let owner = &secret["metadata"]["ownerReferences"][0]["name"];
        ensure!(owner == "second", "{owner}");
        Ok(())
    };
    // It looks again every few seconds. Any other pass over an ApiKey comes later than this waits.
    until(&world, "the loser to take over", taken_over).await?;
    ready(&world, "second", "True/Active").await?;
    assert_ne!(world.get("secret/acme-apikey")?["data"], text);
    Ok(())
}

#[tokio::test]
async fn fault_21_two_keys_with_one_key_id_have_one_winner_and_the_loser_takes_over() -> Result {
    let (world, _operator) = World::running("one-key-id").await?;
    let named = |name: &str, digit: char| {
        let mut key = brought(name, digit);
        key["spec"]["material"]["hash"]["keyId"] = "AAAAbbbb0000".into();
        key
    };
    let first = world.in_force(&named("first", '5')).await?;
    assert_eq!(first["status"]["keyId"], "AAAAbbbb0000");
    world.apply(&named("second", '6'))?;
    let loser = stalled(&world, "second", "KeyConflict").await?;
    let words = message(&loser, "Stalled");
    let wanted = "spec.material.hash.keyId is another ApiKey's";
    assert!(words.contains(wanted), "{words}");
    assert!(!loser["status"].to_string().contains("first"), "{loser}");
    holds(&world, &["AAAAbbbb0000 Enterprise Active"]).await?;
    revoke(&world, "first").await?;
    ready(&world, "second", "True/Active").await?;
    Ok(())
}

#[tokio::test]
async fn a_key_waits_for_an_api_and_its_plan_and_is_told_the_remedy() -> Result {
    let world = World::new("no-api").await?;
    let _operator = world.operator("operator-0")?;
    let mut gold = brought("acme", '2');
    gold["spec"]["plan"] = "Gold".into();
    world.apply(&gold)?;
    let object = "apikey/acme";
    let ambiguous = "False/ApiAmbiguous";
    world.condition(object, "Accepted", ambiguous).await?;
    world.apply(&api())?;
    stalled(&world, "acme", "PlanUnknown").await?;
    edit(&world, "acme", &json!({ "plan": "Free" }))?;
    ready(&world, "acme", "True/PlanWithoutAccess").await?;
    Ok(())
}

#[tokio::test]
async fn a_hash_that_somebody_wrote_into_his_own_secret_is_not_revoked_with_it() -> Result {
    let (world, _operator) = World::running("forged-hash").await?;
    world.in_force(&key("forger")).await?;
    let hash = "7".repeat(64);
    let forged = [
        ("key-hash", hash.as_str()),
        ("key-id", "777777777777"),
        ("revision", "0"),
        ("issued-time", "2026-01-01T00:00:00.000Z"),
        ("retire-time", "2126-01-01T00:00:00.000Z"),
    ];
    let forged =
        forged.map(|(mark, value)| (format!("waterdata.dev/previous-{mark}"), value.into()));
    let forged: serde_json::Map<String, Value> = forged.into_iter().collect();
    let forged = json!({ "metadata": { "annotations": forged } });
    world.patch("secret/forger-apikey", &forged, &[])?;
    revoke(&world, "forger").await?;
    world.in_force(&brought("honest", '7')).await.map(drop)
}

#[tokio::test]
async fn the_finalizers_of_others_stay() -> Result {
    let (world, _operator) = World::running("others-finalizers").await?;
    // The operator remembers one of them at most.
    let theirs = ["example.com/backup", "example.com/billing"];
    let mut acme = brought("acme", '8');
    acme["metadata"]["finalizers"] = json!(theirs);
    let found = world.in_force(&acme).await?;
    let all = [theirs[0], theirs[1], "waterdata.dev/revoke"];
    assert_eq!(found["metadata"]["finalizers"], json!(all));
    delete(&world, "acme")?;
    becomes(&world, "apikey/acme", "theirs alone", |found| {
        found["metadata"]["finalizers"] == json!(theirs)
    })
    .await?;
    holds(&world, &NOTHING).await
}
