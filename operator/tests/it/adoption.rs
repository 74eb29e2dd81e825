//! ApiKeys and Secrets that come back from a backup: in another cluster, where all uids are new, or in their own, where
//! their keys were revoked.

use std::fs;
use std::slice;
use std::str::FromStr;

use anyhow::ensure;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use water_domain::KeyHash;
use water_harness::scratch_directory;

use crate::Result;
use crate::commands::{operator, run};
use crate::gate::{GRACE, Gate};
use crate::steps::{
    SECRET, becomes, count, current, edit, ready, revoke, says, stalled, successor, text_hash,
};
use crate::world::{World, key, shown};

const ADOPT: &str = "waterdata.dev/adopt-secret";

/// A Secret as a backup brings it: without what the API server gives.
fn backed_up(secret: &Value) -> Value {
    let metadata = &secret["metadata"];
    let (name, labels) = (&metadata["name"], &metadata["labels"]);
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": secret["type"], "data": secret["data"],
        "metadata": { "name": name, "labels": labels, "annotations": metadata["annotations"] },
    })
}

/// acme's key was in force, and there is another cluster with an empty Redis, the ApiKey and this Secret.
async fn restored(
    namespace: &str,
    change: impl FnOnce(&mut Value),
) -> anyhow::Result<(World, Value, impl Sized)> {
    let (redis, world, operator) = World::on_own_redis(namespace).await?;
    let before = world.in_force(&key("acme")).await?;
    // An event follows the status, and an operator that is killed in between loses it.
    world.told("acme", &["KeyIssued"]).await?;
    let mut secret = backed_up(&world.get(SECRET)?);
    change(&mut secret);
    operator.kill()?;
    let stripped = json!({ "metadata": { "finalizers": null } });
    world.patch("apikey/acme", &stripped, &[])?;
    world.kubectl(&["delete", "apikey/acme", SECRET])?;
    redis.command(&["FLUSHALL"]).await?;
    world.apply(&secret)?;
    world.apply(&key("acme"))?;
    let operator = world.operator("operator-0")?;
    Ok((world, before, (redis, operator)))
}

/// Runs `water-operator adopt` in the world's namespace, with the ApiKeys of a backup: its exit code and what it says.
async fn adopt(world: &World, backup: &[Value]) -> anyhow::Result<(Option<i32>, String)> {
    let file = scratch_directory("backup")?.join("apikeys.json");
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": backup });
    fs::write(&file, list.to_string())?;
    let file = file.to_string_lossy().into_owned();
    let arguments = ["adopt", "--namespace", &world.namespace, "--backup", &file];
    run(operator(&arguments).env("KUBECONFIG", world.cluster.kubeconfig_path())).await
}

#[tokio::test]
async fn a_restored_secret_is_adopted_once_that_is_asked_for_and_its_key_works_again() -> Result {
    let (world, before, _rest) = restored("adopt", |_| {}).await?;
    let digits = &current(&before)?[..12];
    let words = format!("run water-operator adopt, or annotate the ApiKey with {ADOPT}: {digits}");
    says(&world, "apikey/acme", "Stalled=True/SecretConflict", &words).await?;
    let (code, said) = adopt(&world, slice::from_ref(&before)).await?;
    ensure!(
        code == Some(0) && said.contains("1 ApiKeys ask for"),
        "{said}"
    );
    let adopted = ready(&world, "acme", "True/Active").await?;
    assert_eq!(current(&adopted)?, current(&before)?);
    assert_eq!(text_hash(&world)?, current(&before)?);
    let uid = &adopted["metadata"]["uid"];
    assert_ne!(uid, &before["metadata"]["uid"]);
    let metadata = &world.get(SECRET)?["metadata"];
    assert_eq!(&metadata["annotations"]["waterdata.dev/api-key-uid"], uid);
    assert_eq!(&metadata["ownerReferences"][0]["uid"], uid);
    let told = ["KeyIssued", "SecretConflict", "SecretAdopted", "KeyIssued"];
    world.told("acme", &told).await?;
    becomes(
        &world,
        "apikey/acme",
        "without the spent annotation",
        |found| found["metadata"]["annotations"][ADOPT].is_null(),
    )
    .await?;
    count(&world, 1).await.map(drop)
}

#[tokio::test]
async fn a_secret_that_was_planted_is_neither_adopted_nor_overwritten() -> Result {
    let text = "a".repeat(32);
    let theirs = KeyHash::from_str(&hex::encode(Sha256::digest(&text)))?;
    let (world, before, _rest) = restored("adopt-planted", |secret| {
        secret["stringData"] = json!({ "api-key": text });
        let annotations = &mut secret["metadata"]["annotations"];
        annotations["waterdata.dev/key-hash"] = theirs.to_string().into();
        annotations["waterdata.dev/revision"] = "4000000000".into();
    })
    .await?;
    stalled(&world, "acme", "SecretConflict").await?;
    // Not even for an ApiKey whose backup names it, or that is annotated.
    let mut forged = before;
    forged["status"]["current"]["hash"] = theirs.to_string().into();
    let (code, said) = adopt(&world, &[forged]).await?;
    ensure!(
        code == Some(1) && said.contains("holds no key that an operator made"),
        "{said}"
    );
    let digits = theirs.key_id();
    let annotated = json!({ "metadata": { "annotations": { ADOPT: digits.as_str() } } });
    world.patch("apikey/acme", &annotated, &[])?;
    edit(
        &world,
        "acme",
        &json!({ "description": "after the annotation" }),
    )?;
    becomes(&world, "apikey/acme", "refused again", |found| {
        let is_seen = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        is_seen && shown(found, "Stalled") == "True/SecretConflict"
    })
    .await?;
    ensure!(text_hash(&world)? == theirs.to_string(), "overwritten");
    count(&world, 0).await.map(drop)
}

#[tokio::test]
async fn a_restored_secret_that_the_backup_does_not_name_is_left() -> Result {
    let (world, mut other, _rest) = restored("adopt-other", |_| {}).await?;
    other["status"]["current"]["hash"] = "b".repeat(64).into();
    let (code, said) = adopt(&world, &[other]).await?;
    ensure!(
        code == Some(1) && said.contains("the backup does not name the key"),
        "{said}"
    );
    stalled(&world, "acme", "SecretConflict").await.map(drop)
}

#[tokio::test]
async fn a_restored_secret_with_another_text_is_foreign() -> Result {
    let theirs = |secret: &mut Value| secret["data"]["api-key"] = "dGhlaXJz".into();
    let (world, _, _rest) = restored("adopt-edited", theirs).await?;
    stalled(&world, "acme", "SecretConflict").await?;
    assert_eq!(world.get(SECRET)?["data"]["api-key"], "dGhlaXJz");
    count(&world, 0).await.map(drop)
}

#[tokio::test]
async fn fault_21_a_secret_that_a_deleted_apikey_left_is_waited_for_until_it_is_collected() -> Result
{
    let (world, _operator) = World::running("adopt-left").await?;
    let before = world.in_force(&key("acme")).await?;
    revoke(&world, "acme").await?;
    world.apply(&key("acme"))?;
    let words = "the Secret acme-apikey of a deleted ApiKey of this name is still there";
    says(&world, "apikey/acme", "SecretReady=False/Waiting", words).await?;
    // The garbage collector, which is not there, comes at last.
    world.kubectl(&["delete", SECRET])?;
    let issued = ready(&world, "acme", "True/Active").await?;
    assert_ne!(current(&issued)?, current(&before)?);
    let told = world.events("acme")?;
    ensure!(!told.contains(&"SecretConflict".into()), "{told:?}");
    count(&world, 1).await.map(drop)
}

/// Puts acme's Secret back over the one of this key, as `kubectl replace` does, and returns the key that follows.
async fn put_over(world: &World, mut secret: Value, issued: &str) -> anyhow::Result<String> {
    secret["metadata"]["ownerReferences"] = Value::Null;
    world.patch(SECRET, &secret, &[])?;
    current(&successor(world, issued).await?)
}

#[tokio::test]
async fn what_is_restored_in_its_own_cluster_gets_another_key_in_whatever_order_it_comes() -> Result
{
    let (world, _operator) = World::running("adopt-revoked").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let mut before = current(&world.in_force(&key("acme")).await?)?;
    // The ApiKey alone, with its Secret before it, and with its Secret after it.
    for (is_secret_first, is_secret_last) in [(false, false), (true, false), (false, true)] {
        let secret = backed_up(&world.get(SECRET)?);
        revoke(&world, "acme").await?;
        // The garbage collector is not there.
        world.kubectl(&["delete", SECRET])?;
        if is_secret_first {
            world.apply(&secret)?;
        }
        let mut issued = current(&world.in_force(&key("acme")).await?)?;
        if is_secret_last {
            issued = put_over(&world, secret, &issued).await?;
        }
        assert_eq!(text_hash(&world)?, issued);
        ensure!(gate.accepts(&issued)? && !gate.accepts(&before)?);
        let (found, acme) = (world.get(SECRET)?, world.get("apikey/acme")?);
        let owner = &found["metadata"]["ownerReferences"][0]["uid"];
        assert_eq!(owner, &acme["metadata"]["uid"]);
        // What was written over the Secret took nothing from the key that was in it: that has its overlap.
        count(&world, 1 + usize::from(is_secret_last)).await?;
        before = issued;
    }
    let told = [
        "KeyIssued",
        "KeyRevoked",
        "KeyIssued",
        "KeyRevoked",
        "SecretReissued",
        "KeyIssued",
        "KeyRevoked",
        "KeyIssued",
        "SecretReissued",
    ];
    world.told("acme", &told).await
}
