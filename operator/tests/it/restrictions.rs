//! Tests of restrictions: each takes effect whatever else is wrong with the key.

mod long;

use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_domain::KeyHash;
use water_harness::{Process, Redis};
use water_keystore::Record;

use crate::Result;
use crate::steps::{
    NOTHING, OBJECT, delete, edit, generation, holds, logs, look_again, ready, rebuilt, reported,
    revoke, spoil, spoil_api, stalled, until,
};
use crate::world::{API, PATIENCE, World, api, brought, key};

async fn record(world: &World, digit: char) -> anyhow::Result<Record> {
    let hash: KeyHash = digit.to_string().repeat(64).parse()?;
    let stored = world.directory()?.stored().await?;
    let record = stored.get(&hash).and_then(|stored| stored.record.clone());
    record.context("a record")
}

/// A WaterDataApi with one more plan.
fn with_gold() -> Value {
    let mut api = api();
    let gold = json!({ "name": "Gold", "access": "Allowed", "requestsPerMinute": 500, "requestsPerDay": 90000 });
    let plans = api["spec"]["plans"].as_array_mut();
    plans.expect("it has plans").push(gold);
    api
}

#[tokio::test]
async fn a_key_whose_plan_is_gone_takes_every_restriction_and_widens_when_it_is_back() -> Result {
    let (redis, world, _operator) = World::on_own_redis("strict-plan").await?;
    world.apply(&with_gold())?;
    let mut gold = brought("acme", 'a');
    gold["spec"]["plan"] = "Gold".into();
    world.in_force(&gold).await?;
    world.apply(&api())?;
    stalled(&world, "acme", "PlanUnknown").await?;
    holds(&world, &["aaaaaaaaaaaa Gold Active"]).await?;
    gold["spec"]["suspend"] = true.into();
    gold["spec"]["expirationTime"] = "2100-01-01T00:00:00Z".into();
    world.apply(&gold)?;
    let suspended = "aaaaaaaaaaaa Gold Suspended".to_owned();
    holds(&world, &[&suspended]).await?;
    let expires = record(&world, 'a').await?.expires.context("an end")?;
    assert_eq!(expires.to_string(), "2100-01-01T00:00:00.000Z");
    // What widens waits until the plan is known, though Redis forgets what it held.
    gold["spec"]["suspend"] = false.into();
    gold["spec"]["plan"] = "Typo".into();
    world.apply(&gold)?;
    reported(&world, "acme").await?;
    holds(&world, &[&suspended]).await?;
    let earlier = generation(&world).await?;
    redis.command(&["FLUSHALL"]).await?;
    rebuilt(&world, std::slice::from_ref(&suspended), earlier).await?;
    gold["spec"]["material"] = brought("acme", 'c')["spec"]["material"].clone();
    gold["spec"]["rotation"] = json!({ "overlapSeconds": 0 });
    world.apply(&gold)?;
    holds(&world, &NOTHING).await?;
    gold["spec"]["plan"] = "Gold".into();
    world.apply(&gold)?;
    world.apply(&with_gold())?;
    holds(&world, &["cccccccccccc Gold Active"]).await
}

#[tokio::test]
async fn a_key_whose_secret_became_anothers_is_suspended() -> Result {
    let (world, _operator) = World::running("strict-secret").await?;
    let issued = world.in_force(&key("acme")).await?;
    let id = issued["status"]["keyId"].as_str().context("a key id")?;
    // As a tool leaves it that copies Secrets without their annotations.
    let annotations = json!({ "metadata": { "annotations": {
        "waterdata.dev/key-hash": null, "waterdata.dev/api-key-uid": null,
    } } });
    world.patch("secret/acme-apikey", &annotations, &[])?;
    stalled(&world, "acme", "SecretConflict").await?;
    holds(&world, &[&format!("{id} Enterprise Active")]).await?;
    edit(&world, "acme", &json!({ "suspend": true, "plan": "Free" }))?;
    holds(&world, &[&format!("{id} Free Suspended")]).await
}

/// Makes a spoilt ApiKey one that can be decoded, and waits until its key is in force.
async fn correct(world: &World, name: &str) -> Result {
    let readable = json!({ "notBefore": null, "suspend": false });
    edit(world, name, &readable)?;
    ready(world, name, "True/Active").await.map(drop)
}

#[tokio::test]
async fn fault_16_keys_that_cannot_be_read_are_kept_and_take_every_restriction() -> Result {
    let (redis, world, operator) = World::on_own_redis("unreadable").await?;
    let names = [
        ("kept", 'a'),
        ("paused", 'b'),
        ("replaced", 'c'),
        ("deleted", 'd'),
    ];
    for (name, digit) in names {
        world.in_force(&brought(name, digit)).await?;
        spoil(&world, name).await?;
    }
    world.told("kept", &["KeyIssued", "Undecodable"]).await?;
    let active = |digit: char| format!("{} Enterprise Active", digit.to_string().repeat(12));
    holds(&world, &['a', 'b', 'c', 'd'].map(active)).await?;
    edit(&world, "paused", &json!({ "suspend": true }))?;
    let mut replaced = json!({ "rotation": { "overlapSeconds": 0 } });
    replaced["material"] = brought("replaced", 'e')["spec"]["material"].clone();
    edit(&world, "replaced", &replaced)?;
    revoke(&world, "deleted").await?;
    let suspended = "bbbbbbbbbbbb Enterprise Suspended".to_owned();
    let restricted = [active('a'), suspended];
    holds(&world, &restricted).await?;
    world.apply(&brought("deleted", 'd'))?;
    stalled(&world, "deleted", "RevokedInStore").await?;
    revoke(&world, "deleted").await?;

    let earlier = generation(&world).await?;
    redis.command(&["FLUSHALL"]).await?;
    rebuilt(&world, &restricted, earlier).await?;
    // The next leader finds another server, and nothing but what that holds.
    let earlier = generation(&world).await?;
    operator.stop(PATIENCE).await?;
    redis.command(&["SAVE"]).await?;
    redis.kill()?;
    redis.start_again().await?;
    let _next = world.operator("operator-1")?;
    rebuilt(&world, &restricted, earlier).await?;

    // Corrected, they are keys like others.
    for name in ["kept", "paused"] {
        correct(&world, name).await?;
    }
    revoke(&world, "kept").await?;
    holds(&world, &[active('b')]).await
}

/// Gives the world's namespace the label that admits its account, by `=`, or takes it away, by `-`.
fn bind(world: &World, change: &str) -> Result {
    let label = format!("account.waterdata.dev/acme{change}");
    let words = ["label", "namespace", &world.namespace, &label];
    world.cluster.kubectl(&words).map(drop)
}

/// A world whose namespace is admitted by its label, with an ApiKey that cannot be decoded and one that can. The keys
/// of both are in force.
async fn bound(namespace: &str) -> anyhow::Result<(Redis, World, Arc<Process>)> {
    let (redis, world, operator) = World::on_own_redis(namespace).await?;
    let mut bound = api();
    bound["spec"]["apiKeys"]["accountBinding"] = "NamespaceLabel".into();
    bind(&world, "=")?;
    world.apply(&bound)?;
    world.in_force(&brought("comma", 'b')).await?;
    spoil(&world, "comma").await?;
    world.in_force(&brought("acme", 'c')).await?;
    Ok((redis, world, operator))
}

#[tokio::test]
async fn keys_are_withdrawn_with_the_admission_of_their_namespace_and_a_rebuild_asks_who_is_admitted()
-> Result {
    let (redis, world, operator) = bound("unbound").await?;
    bind(&world, "-")?;
    // Nothing reports a namespace's labels here: each pass reads them.
    for name in ["comma", "acme"] {
        look_again(&world, &format!("apikey/{name}"), "unbound")?;
    }
    holds(&world, &NOTHING).await?;
    stalled(&world, "acme", "AccountNotBound").await?;
    operator.stop(PATIENCE).await?;
    bind(&world, "=")?;
    redis.command(&["FLUSHALL"]).await?;
    let next = world.operator("operator-1")?;
    logs(&world, &next, "key directory rebuilt").await?;
    let log = next.log();
    let rebuilt = log
        .lines()
        .find(|line| line.contains("key directory rebuilt"));
    let rebuilt: Value = serde_json::from_str(rebuilt.context("a rebuild")?)?;
    assert_eq!(rebuilt["records"], 1, "not what its status told: {log}");
    Ok(())
}

#[tokio::test]
async fn no_trouble_of_an_api_holds_up_a_restriction() -> Result {
    let (world, operator) = World::running("troubled-api").await?;
    for digit in '5'..='8' {
        world
            .in_force(&brought(&format!("key-{digit}"), digit))
            .await?;
    }
    // Suspends the key of that digit and deletes its ApiKey, and sees both act.
    let restrict = async |digit: char| {
        let (name, id) = (format!("key-{digit}"), digit.to_string().repeat(12));
        edit(&world, &name, &json!({ "suspend": true }))?;
        let suspended = format!("{id} Enterprise Suspended");
        until(&world, &suspended, async || {
            let published = world.published().await?;
            ensure!(published.contains(&suspended), "{published:?}");
            Ok(())
        })
        .await?;
        revoke(&world, &name).await?;
        let published = world.published().await?.concat();
        ensure!(!published.contains(&id), "{published}");
        Ok(())
    };
    let secret = world.get("secret/redis")?["data"].clone();
    world.kubectl(&["delete", "secret", "redis"])?;
    let invalid = "True/SecretInvalid";
    world.condition(OBJECT, "Stalled", invalid).await?;
    restrict('5').await?;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "redis" }, "data": secret });
    world.apply(&secret)?;
    world.synced().await?;

    // The next leader has never seen it otherwise.
    operator.kill()?;
    spoil_api(&world)?;
    operator.start_again()?;
    restrict('6').await?;

    operator.kill()?;
    let readable = json!({ "spec": { "components": { "gate": { "resources": null } } } });
    world.patch(OBJECT, &readable, &[])?;
    let kept = json!({ "metadata": { "finalizers": ["example.com/backup"] } });
    world.patch(OBJECT, &kept, &[])?;
    world.kubectl(&["delete", "waterdataapi", API, "--wait=false"])?;
    operator.start_again()?;
    restrict('7').await?;

    world.patch(OBJECT, &json!({ "metadata": { "finalizers": null } }), &[])?;
    world.gone(OBJECT).await?;
    look_again(&world, "apikey/key-8", "gone")?;
    let lost = "False/ApiNotFound";
    world.condition("apikey/key-8", "Accepted", lost).await?;
    holds(&world, &["888888888888 Enterprise Active"]).await?;
    restrict('8').await
}

#[tokio::test]
async fn a_hash_that_was_never_announced_is_revoked_with_its_apikey() -> Result {
    let (world, operator) = World::running("strict-unannounced").await?;
    world.in_force(&brought("acme", '1')).await?;
    operator.stop(PATIENCE).await?;
    world.apply(&brought("acme", '2'))?;
    delete(&world, "acme")?;
    let _next = world.operator("operator-1")?;
    world.gone("apikey/acme").await?;
    world.apply(&brought("acme", '2'))?;
    stalled(&world, "acme", "RevokedInStore").await?;
    Ok(())
}
