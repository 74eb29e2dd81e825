//! What restricts a key takes effect whatever else is wrong with it.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_domain::KeyHash;
use water_harness::Redis;
use water_keystore::Record;

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::store_faults::{generation, rebuilt};
use crate::world::{PATIENCE, World, api, brought, key, shown};

/// Waits until the directory holds exactly these.
pub async fn holds(world: &World, wanted: &[impl AsRef<str> + std::fmt::Debug]) -> Result {
    let published = async || {
        let published = world.published().await?;
        let wanted = wanted.iter().map(AsRef::as_ref);
        ensure!(wanted.eq(published.iter()), "{published:?}");
        Ok(())
    };
    world
        .wait(&format!("{wanted:?}"), PATIENCE, published)
        .await
}

async fn record(world: &World, digit: char) -> anyhow::Result<Record> {
    let hash: KeyHash = digit.to_string().repeat(64).parse()?;
    let stored = world.directory()?.stored().await?;
    let record = stored.get(&hash).and_then(|stored| stored.record.clone());
    record.context("a record")
}

/// A WaterDataApi with one more plan.
fn with_gold() -> Value {
    let mut api = api();
    let plans = api["spec"]["plans"].as_array().cloned();
    let gold = json!({ "name": "Gold", "access": "Allowed", "requestsPerMinute": 500, "requestsPerDay": 90000 });
    let plans = plans.into_iter().flatten().chain([gold]);
    api["spec"]["plans"] = plans.collect();
    api
}

/// A key on Gold, after that plan has gone.
async fn without_its_plan(
    namespace: &str,
    digit: char,
) -> anyhow::Result<(World, Value, impl Sized)> {
    let (world, operator) = World::running(namespace).await?;
    let gold = loses_its_plan(&world, digit).await?;
    Ok((world, gold, operator))
}

async fn loses_its_plan(world: &World, digit: char) -> anyhow::Result<Value> {
    world.apply(&with_gold())?;
    let mut gold = brought("acme", digit);
    gold["spec"]["plan"] = "Gold".into();
    world.in_force(&gold).await?;
    world.apply(&api())?;
    world
        .condition("apikey/acme", "Stalled", "True/PlanUnknown")
        .await?;
    let id = digit.to_string().repeat(12);
    assert_eq!(world.published().await?, [format!("{id} Gold Active")]);
    Ok(gold)
}

/// The operator has seen what was edited last.
async fn is_seen(world: &World, name: &str) -> Result {
    let seen = async || {
        let found = world.get(&format!("apikey/{name}"))?;
        let seen = &found["status"]["observedGeneration"];
        ensure!(*seen == found["metadata"]["generation"], "{found}");
        Ok(())
    };
    world.wait("the edit to be seen", PATIENCE, seen).await
}

#[tokio::test]
async fn a_key_whose_plan_is_gone_is_suspended_and_expires() -> Result {
    let (world, mut gold, _operator) = without_its_plan("strict-plan", 'a').await?;
    gold["spec"]["suspend"] = true.into();
    gold["spec"]["expirationTime"] = "2100-01-01T00:00:00Z".into();
    world.apply(&gold)?;
    holds(&world, &["aaaaaaaaaaaa Gold Suspended"]).await?;
    let expires = record(&world, 'a').await?.expires.context("an end")?;
    assert_eq!(expires.to_string(), "2100-01-01T00:00:00.000Z");
    // What widens waits until the plan is known.
    gold["spec"]["suspend"] = false.into();
    world.apply(&gold)?;
    is_seen(&world, "acme").await?;
    assert_eq!(world.published().await?, ["aaaaaaaaaaaa Gold Suspended"]);
    world.apply(&with_gold())?;
    holds(&world, &["aaaaaaaaaaaa Gold Active"]).await
}

#[tokio::test]
async fn a_wiped_redis_widens_nothing_that_waits() -> Result {
    let (redis, world, _operator) = World::on_own_redis("strict-wiped").await?;
    let mut gold = loses_its_plan(&world, '9').await?;
    gold["spec"]["suspend"] = true.into();
    world.apply(&gold)?;
    holds(&world, &["999999999999 Gold Suspended"]).await?;
    gold["spec"]["suspend"] = false.into();
    gold["spec"]["plan"] = "Typo".into();
    world.apply(&gold)?;
    is_seen(&world, "acme").await?;
    let earlier = generation(&world).await?;
    redis.command(&["FLUSHALL"]).await?;
    rebuilt(&world, &["999999999999 Gold Suspended".into()], earlier).await
}

#[tokio::test]
async fn a_key_whose_plan_is_gone_loses_a_replaced_hash() -> Result {
    let (world, mut gold, _operator) = without_its_plan("strict-hash", 'b').await?;
    gold["spec"]["material"] = brought("acme", 'c')["spec"]["material"].clone();
    gold["spec"]["rotation"] = json!({ "overlapSeconds": 0 });
    world.apply(&gold)?;
    holds(&world, &[""; 0]).await?;
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
    world
        .condition("apikey/acme", "Stalled", "True/SecretConflict")
        .await?;
    holds(&world, &[&format!("{id} Enterprise Active")]).await?;
    let suspend = json!({ "spec": { "suspend": true, "plan": "Free" } });
    world.patch("apikey/acme", &suspend, &[])?;
    holds(&world, &[&format!("{id} Free Suspended")]).await
}

#[tokio::test]
async fn a_hash_that_is_corrected_before_it_was_in_force_is_dead() -> Result {
    const A: &str = "aaaaaaaaaaaa Enterprise Active";
    let (world, _operator) = World::running("strict-corrected").await?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    world.in_force(&brought("partner", 'a')).await?;
    gate.fall_silent();
    world.apply(&brought("partner", 'b'))?;
    let beside = |id: &str| [A.to_owned(), format!("{id} Enterprise Active")];
    holds(&world, &beside("bbbbbbbbbbbb")).await?;
    world.apply(&brought("partner", 'c'))?;
    // The first one works on: it was in force.
    holds(&world, &beside("cccccccccccc")).await?;
    gate.follow();
    let corrected = async || {
        let found = world.get("apikey/partner")?;
        ensure!(shown(&found, "Ready") == "True/Active", "{found}");
        ensure!(found["status"]["keyId"] == "cccccccccccc", "{found}");
        Ok(())
    };
    world.wait("the third hash", PATIENCE, corrected).await?;
    assert_eq!(gate.keys(), 2);
    // The gate follows in this thread: kubectl must not hold that up.
    world.kubectl(&["delete", "apikey", "partner", "--wait=false"])?;
    world.gone("apikey/partner").await?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    assert_eq!(gate.keys(), 0);
    Ok(())
}

#[tokio::test]
async fn a_brought_key_that_is_deleted_before_it_was_in_force_is_dead_before_it_goes() -> Result {
    let (world, operator) = World::running("strict-unborn").await?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    gate.fall_silent();
    world.apply(&brought("partner", 'd'))?;
    holds(&world, &["dddddddddddd Enterprise Active"]).await?;
    // Whoever published it says nothing of it any more.
    operator.kill()?;
    world.kubectl(&["delete", "apikey", "partner", "--wait=false"])?;
    let _next = world.operator("operator-0")?;
    let waits = async || {
        let found = world.get("apikey/partner")?;
        ensure!(
            found["status"]["waitingFor"] == json!(["gate-0"]),
            "{found}"
        );
        Ok(())
    };
    world.wait("the deletion to wait", PATIENCE, waits).await?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    gate.follow();
    world.gone("apikey/partner").await?;
    assert_eq!(gate.keys(), 0);
    world.told("partner", &["KeyRevoked"]).await
}

/// Makes a key unreadable that was in force.
pub async fn unreadable(world: &World, digit: char) -> Result {
    world.in_force(&brought("comma", digit)).await?;
    let comma = json!({ "spec": { "notBefore": "2026-01-01T00:00:00,5Z" } });
    world.patch("apikey/comma", &comma, &[])?;
    world
        .condition("apikey/comma", "Stalled", "True/Undecodable")
        .await?;
    Ok(())
}

#[tokio::test]
async fn an_unreadable_key_that_was_corrected_and_deleted_keeps_no_other_from_being_swept() -> Result
{
    let (world, _operator) = World::running("unreadable-corrected").await?;
    unreadable(&world, 'b').await?;
    let corrected = json!({ "spec": { "notBefore": null } });
    world.patch("apikey/comma", &corrected, &[])?;
    world
        .condition("apikey/comma", "Ready", "True/Active")
        .await?;
    world.kubectl(&["delete", "apikey", "comma"])?;
    world.in_force(&brought("acme", 'c')).await?;
    let stripped = json!({ "metadata": { "finalizers": null } });
    world.patch("apikey/acme", &stripped, &[])?;
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    // A pass may have given it its finalizer again.
    let _ = world.patch("apikey/acme", &stripped, &[]);
    holds(&world, &[""; 0]).await
}

#[tokio::test]
async fn a_key_that_cannot_be_read_can_be_suspended() -> Result {
    let (world, _operator) = World::running("unreadable-suspended").await?;
    unreadable(&world, 'b').await?;
    world.patch("apikey/comma", &json!({ "spec": { "suspend": true } }), &[])?;
    holds(&world, &["bbbbbbbbbbbb Enterprise Suspended"]).await?;
    let corrected = json!({ "spec": { "notBefore": null, "suspend": false } });
    world.patch("apikey/comma", &corrected, &[])?;
    holds(&world, &["bbbbbbbbbbbb Enterprise Active"]).await
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_withdrawn_with_the_admission_of_its_namespace() -> Result {
    let world = World::new("unreadable-unbound").await?;
    let label = |change: &str| {
        let label = format!("account.waterdata.dev/acme{change}");
        world
            .cluster
            .kubectl(&["label", "namespace", &world.namespace, &label])
    };
    let mut bound = api();
    bound["spec"]["apiKeys"]["accountBinding"] = "NamespaceLabel".into();
    world.apply(&bound)?;
    label("=")?;
    let _operator = world.operator("operator-0")?;
    unreadable(&world, 'b').await?;
    world.in_force(&brought("acme", 'c')).await?;
    label("-")?;
    // Nothing tells of a namespace's labels here: the sweep finds what they no longer admit.
    holds(&world, &[""; 0]).await
}

/// A key in force, and an operator that never saw how its WaterDataApi came to be as `change` leaves it.
async fn under_a_later_leader(
    namespace: &str,
    digit: char,
    change: impl FnOnce(&World) -> Result,
) -> anyhow::Result<(World, impl Sized)> {
    let (world, operator) = World::running(namespace).await?;
    world.in_force(&brought("acme", digit)).await?;
    operator.kill()?;
    change(&world)?;
    let next = world.operator("operator-0")?;
    Ok((world, next))
}

/// Makes the WaterDataApi one that the schema admits and that cannot be decoded.
pub fn spoil_api(world: &World) -> Result {
    // The schema bounds no number among the quantities, and the operator reads 32 bits.
    let requests = json!({ "requests": { "memory": 3_000_000_000_u64 } });
    let spec = json!({ "components": { "gate": { "resources": requests } } });
    world.patch("waterdataapi/water-data", &json!({ "spec": spec }), &[])
}

/// Suspends the key of that digit and deletes its ApiKey, and sees both act.
async fn can_be_suspended_and_deleted(world: &World, digit: char) -> Result {
    world.patch("apikey/acme", &json!({ "spec": { "suspend": true } }), &[])?;
    let id = digit.to_string().repeat(12);
    holds(world, &[format!("{id} Enterprise Suspended")]).await?;
    world.kubectl(&["delete", "apikey", "acme"])?;
    holds(world, &[""; 0]).await
}

#[tokio::test]
async fn an_api_that_cannot_be_read_holds_up_no_restriction() -> Result {
    let (world, _next) = under_a_later_leader("unreadable-apis-key", '8', spoil_api).await?;
    can_be_suspended_and_deleted(&world, '8').await
}

#[tokio::test]
async fn an_api_that_somebody_keeps_from_going_holds_up_no_restriction() -> Result {
    let keep = |world: &World| {
        let kept = json!({ "metadata": { "finalizers": ["example.com/backup"] } });
        world.patch("waterdataapi/water-data", &kept, &[])?;
        world
            .kubectl(&["delete", "waterdataapi", "water-data", "--wait=false"])
            .map(drop)
    };
    let (world, _next) = under_a_later_leader("terminating-api", '9', keep).await?;
    can_be_suspended_and_deleted(&world, '9').await
}

#[tokio::test]
async fn a_missing_secret_of_redis_holds_up_no_restriction() -> Result {
    let (world, _operator) = World::running("no-redis-secret").await?;
    world.in_force(&brought("acme", '5')).await?;
    world.kubectl(&["delete", "secret", "redis"])?;
    world
        .condition("waterdataapi/water-data", "Stalled", "True/SecretInvalid")
        .await?;
    can_be_suspended_and_deleted(&world, '5').await
}

#[tokio::test]
async fn a_plan_that_records_name_stays_though_no_spec_names_it_any_more() -> Result {
    let (world, operator) = World::running("plan-renamed").await?;
    world.apply(&with_gold())?;
    let mut gold = brought("acme", '6');
    gold["spec"]["plan"] = "Gold".into();
    world.in_force(&gold).await?;
    operator.kill()?;
    world.patch("apikey/acme", &json!({ "spec": { "plan": "Typo" } }), &[])?;
    world.apply(&api())?;
    let _next = world.operator("operator-0")?;
    world
        .condition("apikey/acme", "Stalled", "True/PlanUnknown")
        .await?;
    world.synced().await?;
    assert_eq!(world.published().await?, ["666666666666 Gold Active"]);
    let plans = world.directory()?.plans().await?;
    assert!(
        plans.iter().any(|plan| plan.name.as_str() == "Gold"),
        "{plans:?}"
    );
    Ok(())
}

#[tokio::test]
async fn an_unreadable_value_of_any_length_is_told_in_an_event() -> Result {
    let world = World::alone("unreadable-long").await?;
    world.apply(&api())?;
    let _operator = world.operator("operator-0")?;
    // As a later version's definition might allow it.
    let suspend = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/suspend";
    let patch = json!([{ "op": "replace", "path": suspend, "value": { "type": "string" } }]);
    let patch = ["--type=json", "--patch", &patch.to_string()];
    world.kubectl(&[&["patch", "crd", "apikeys.waterdata.dev"][..], &patch].concat())?;
    let mut long = brought("long", 'd');
    long["spec"]["suspend"] = "x".repeat(2000).into();
    // The API server takes a changed definition a moment later.
    let taken = async || world.apply(&long);
    world.wait("the definition", PATIENCE, taken).await?;
    world.told("long", &["Undecodable"]).await
}

#[tokio::test]
async fn a_key_that_cannot_be_read_stalls_only_itself_and_can_be_deleted() -> Result {
    let (world, _operator) = World::running("unreadable").await?;
    unreadable(&world, 'b').await?;
    world.in_force(&brought("acme", 'c')).await?;
    holds(
        &world,
        &[
            "bbbbbbbbbbbb Enterprise Active",
            "cccccccccccc Enterprise Active",
        ],
    )
    .await?;
    world.told("comma", &["KeyIssued", "Undecodable"]).await?;
    world.kubectl(&["delete", "apikey", "comma"])?;
    holds(&world, &["cccccccccccc Enterprise Active"]).await?;
    world.apply(&brought("comma", 'b'))?;
    world
        .condition("apikey/comma", "Stalled", "True/RevokedInStore")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_key_that_cannot_be_read_loses_a_replaced_hash() -> Result {
    let (world, _operator) = World::running("unreadable-hash").await?;
    unreadable(&world, '7').await?;
    let mut replaced = json!({ "spec": { "rotation": { "overlapSeconds": 0 } } });
    replaced["spec"]["material"] = brought("comma", 'd')["spec"]["material"].clone();
    world.patch("apikey/comma", &replaced, &[])?;
    holds(&world, &[""; 0]).await
}

#[tokio::test]
async fn a_rebuild_keeps_a_key_that_cannot_be_read() -> Result {
    let (redis, world, operator) = World::on_own_redis("unreadable-rebuild").await?;
    unreadable(&world, 'e').await?;
    redis.command(&["FLUSHALL"]).await?;
    holds(&world, &["eeeeeeeeeeee Enterprise Active"]).await?;
    // The next leader finds another server, and nothing but what that holds.
    operator.stop(PATIENCE).await?;
    redis.command(&["SAVE"]).await?;
    redis.kill()?;
    redis.start_again().await?;
    let _next = world.operator("operator-1")?;
    let rebuilt = async || {
        let seen = world.observe().await?;
        ensure!(!seen.needs_rebuild(), "{seen:?}");
        Ok(())
    };
    world.wait("the rebuild", PATIENCE, rebuilt).await?;
    holds(&world, &["eeeeeeeeeeee Enterprise Active"]).await
}

#[tokio::test]
async fn a_broken_api_holds_up_no_suspension() -> Result {
    let (world, _operator) = World::running("strict-broken").await?;
    world.in_force(&brought("acme", 'f')).await?;
    world.kubectl(&["delete", "waterdataapi", "water-data"])?;
    let missing = async || {
        let found = world.get("apikey/acme")?;
        ensure!(shown(&found, "Accepted") == "False/ApiNotFound", "{found}");
        Ok(())
    };
    world.kubectl(&["annotate", "apikey", "acme", "looked-at=again"])?;
    world.wait("the loss to be seen", PATIENCE, missing).await?;
    holds(&world, &["ffffffffffff Enterprise Active"]).await?;
    world.patch("apikey/acme", &json!({ "spec": { "suspend": true } }), &[])?;
    holds(&world, &["ffffffffffff Enterprise Suspended"]).await
}

#[tokio::test]
async fn a_store_that_is_away_hides_no_lost_admission_from_a_rebuild() -> Result {
    let redis = Redis::start().await?;
    let world = World::with_redis("strict-away", &redis.url()).await?;
    world.apply(&with_gold())?;
    let _operator = world.operator("operator-0")?;
    let mut gold = brought("acme", 'a');
    gold["spec"]["plan"] = "Gold".into();
    world.in_force(&gold).await?;
    world.apply(&api())?;
    world
        .condition("apikey/acme", "Stalled", "True/PlanUnknown")
        .await?;
    redis.kill()?;
    world.kubectl(&["annotate", "apikey", "acme", "looked-at=again"])?;
    let away = world
        .condition("apikey/acme", "Synced", "False/StoreUnavailable")
        .await?;
    assert_eq!(shown(&away, "Accepted"), "False/PlanUnknown");
    Ok(())
}

#[tokio::test]
async fn a_hash_that_was_never_announced_is_revoked_with_its_apikey() -> Result {
    let (world, operator) = World::running("strict-unannounced").await?;
    world.in_force(&brought("acme", '1')).await?;
    operator.stop(PATIENCE).await?;
    world.apply(&brought("acme", '2'))?;
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    let _next = world.operator("operator-1")?;
    world.gone("apikey/acme").await?;
    world.apply(&brought("acme", '2'))?;
    world
        .condition("apikey/acme", "Stalled", "True/RevokedInStore")
        .await?;
    Ok(())
}
