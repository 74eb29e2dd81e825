//! Tests of objects of others that block a key: a Secret of its name, or its hash. Both are kept from it, and every
//! other key goes its way.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::Instant;
use water_kit::operator::clients::Expected;
use water_kit::operator::objects::secret_of;
use water_kit::operator::stage::Stage;
use water_kit::operator::world::{brought, key};

use super::population::Population;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_20_a_foreign_secret_of_its_name_holds_up_one_key_and_costs_none() -> Result<()> {
    let stage = Stage::new("foreign").await?;
    let population = Population::make(&stage).await?;
    // One is there before its ApiKey; the other was a key's own, until a tool copied it.
    stage.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "new-apikey" },
        "stringData": { "api-key": "theirs" },
    }))?;
    let copied = stage.generate("copied").await?;
    let bare = json!({ "metadata": { "annotations": {
        "waterdata.dev/key-hash": null, "waterdata.dev/api-key-uid": null,
    } } });
    stage.objects.patch(&secret_of("copied"), &bare)?;
    stage.objects.create(&key("new"))?;
    let names = ["new", "copied"];
    let secrets = || names.map(|name| stage.get(&secret_of(name)).ok());
    let foreign = secrets();
    population.change(&stage)?;
    let changed = Instant::now();
    for name in names {
        stage.key_is(name, "Stalled", "True/SecretConflict").await?;
    }
    population.rest(&stage, changed).await?;
    stage.holds_for_good().await?;
    ensure!(foreign.iter().all(Option::is_some) && secrets() == foreign);
    let healed = Instant::now();
    for name in names {
        stage.objects.delete(&secret_of(name))?;
        stage.key_is(name, "Ready", "True/Active").await?;
        let issued = stage.objects.text_hash(name)?.context("a key")?;
        stage.clients.expect(issued, Expected::Accepted);
        ensure!(issued != copied, "{name} has the key that was taken");
    }
    population.rest(&stage, healed).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_21_a_hash_that_three_keys_name_is_one_keys_at_a_time() -> Result<()> {
    let stage = Stage::new("shared-hash").await?;
    let population = Population::make(&stage).await?;
    let shared = stage.bring("first", '1').await?;
    for (name, account) in [("second", "other"), ("third", "another")] {
        let mut key = brought(name, '1');
        key["spec"]["accountId"] = account.into();
        stage.objects.create(&key)?;
        stage.key_is(name, "Stalled", "True/KeyConflict").await?;
    }
    population.change(&stage)?;
    // One that never had it takes nothing with it.
    stage.objects.delete("apikey/third")?;
    stage.gone("apikey/third").await?;
    population.rest(&stage, Instant::now()).await?;
    stage.clients.expect(shared, Expected::Either);
    stage.objects.delete("apikey/first")?;
    let deleted = Instant::now();
    stage.key_is("second", "Ready", "True/Active").await?;
    stage.clients.expect(shared, Expected::Accepted);
    population.rest(&stage, deleted).await?;
    // Its account's tombstone bars the first one permanently.
    stage.objects.create(&brought("first", '1'))?;
    let revoked = "True/RevokedInStore";
    stage.key_is("first", "Stalled", revoked).await?;
    stage.holds_for_good().await?;
    stage.revoke("second", shared).await?;
    stage.holds().await
}
