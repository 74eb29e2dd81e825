//! What belongs to another stands in the way of a key: a Secret of its name, or its hash. Both are
//! kept from it, and every other key goes its way.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use water_domain::KeyHash;

use crate::clients::Expected;
use crate::objects::{secret_name, shown};
use crate::population::{Population, delete, in_force};
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::world::{PATIENCE, brought, key};

/// Waits until a condition of the key as it is declared now reads so.
async fn is(stage: &Stage, name: &str, aspect: &str, wanted: &str) -> Result<()> {
    let told = async || {
        let key = stage.objects.key(name).await?.context("no ApiKey")?;
        let shown = shown(&key, aspect);
        ensure!(shown == wanted, "{shown}: {:?}", key.status);
        Ok(())
    };
    let what = format!("{name} to be {aspect}={wanted}");
    stage.wait(&what, PATIENCE, told).await
}

/// The Secret of an ApiKey of that name, as it stands.
fn secret(stage: &Stage, name: &str) -> Result<Value> {
    stage.world.get(&format!("secret/{}", secret_name(name)))
}

/// Deletes the Secret of that name, and waits until its key is in force, by another Secret.
async fn give_way(stage: &Stage, name: &str) -> Result<KeyHash> {
    stage.objects.delete_secret(name).await?;
    is(stage, name, "Ready", "True/Active").await?;
    let issued = stage.objects.text_hash(name).await?;
    let issued = issued.context("a key")?;
    stage.clients.expect(issued, Expected::Accepted);
    Ok(issued)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_secret_of_its_name_holds_up_one_key_and_costs_none() -> Result<()> {
    let stage = Stage::new("foreign").await?;
    let population = Population::of(&stage).await?;
    // One is there before its ApiKey; the other was a key's own, until a tool copied it.
    stage.world.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": secret_name("new") },
        "stringData": { "api-key": "theirs" },
    }))?;
    let copied = Scenario::Suspend.prepare(&stage, "copied").await?;
    let copied = copied.before.context("a key")?;
    let bare = json!({ "metadata": { "annotations": {
        "waterdata.dev/key-hash": null, "waterdata.dev/api-key-uid": null,
    } } });
    let of_copied = format!("secret/{}", secret_name("copied"));
    stage.world.patch(&of_copied, &bare, &[])?;
    stage.objects.create(&key("new")).await?;
    let foreign = (secret(&stage, "new")?, secret(&stage, "copied")?);
    population.change(&stage).await?;
    let changed = Instant::now();
    for name in ["new", "copied"] {
        is(&stage, name, "Stalled", "True/SecretConflict").await?;
    }
    population.rest(&stage, changed).await?;
    stage.holds_for_good().await?;
    let left = (secret(&stage, "new")?, secret(&stage, "copied")?);
    ensure!(left == foreign, "{left:?}");
    let healed = Instant::now();
    for name in ["new", "copied"] {
        let issued = give_way(&stage, name).await?;
        ensure!(issued != copied, "{name} has the key that was taken");
    }
    population.rest(&stage, healed).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hash_that_three_keys_name_is_one_keys_at_a_time() -> Result<()> {
    let stage = Stage::new("shared-hash").await?;
    let population = Population::of(&stage).await?;
    let shared = in_force(&stage, "first", '1').await?;
    for (name, account) in [("second", "other"), ("third", "another")] {
        let mut key = brought(name, '1');
        key["spec"]["accountId"] = account.into();
        stage.objects.create(&key).await?;
        is(&stage, name, "Stalled", "True/KeyConflict").await?;
    }
    population.change(&stage).await?;
    // One that never had it takes nothing with it.
    stage.objects.delete("third").await?;
    stage.world.gone("apikey/third").await?;
    population.rest(&stage, Instant::now()).await?;
    stage.clients.expect(shared, Expected::Either);
    stage.objects.delete("first").await?;
    let deleted = Instant::now();
    is(&stage, "second", "Ready", "True/Active").await?;
    stage.clients.expect(shared, Expected::Accepted);
    population.rest(&stage, deleted).await?;
    // Its account's tombstone bars the first one for good.
    stage.objects.create(&brought("first", '1')).await?;
    is(&stage, "first", "Stalled", "True/RevokedInStore").await?;
    stage.holds_for_good().await?;
    delete(&stage, "second", shared).await?;
    stage.holds().await
}
