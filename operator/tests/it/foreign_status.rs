//! Tests of statuses into which somebody else has written the WaterDataApi: what a key directory holds decides over
//! revocation, not what a status says.

use anyhow::Context;
use serde_json::{Value, json};
use water_harness::Redis;
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, Directory, Instance, KeyState};
use water_kit::PatientDirectory;

use crate::Result;
use crate::commands::released;
use crate::gate::{GRACE, Gate};
use crate::steps::{
    NOTHING, OBJECT, becomes, delete, edit, event, holds, message, one_leadership, ready, reported,
    says, spoil_api, stalled,
};
use crate::world::{API, PATIENCE, World, api, brought, key, redis_secret, shown};

const OTHER: &str = "other";

/// Writes the name of a WaterDataApi into acme's status, or takes the name away.
fn misname(world: &World, name: Option<&str>) -> Result {
    let named = name.map(|name| json!({ "name": name, "namespace": world.namespace }));
    let status = json!({ "status": { "api": named } });
    world.patch("apikey/acme", &status, &["--subresource=status"])
}

/// Waits until acme's status names the WaterDataApi that has its key.
async fn put_back(world: &World) -> Result {
    let is_back = |key: &Value| key["status"]["api"]["name"] == API;
    becomes(
        world,
        "apikey/acme",
        "the name of its WaterDataApi",
        is_back,
    )
    .await
    .map(drop)
}

/// Applies another WaterDataApi, on the Redis at this URL.
fn apply_beside(world: &World, redis_url: &str) -> Result {
    let secret = format!("{OTHER}-redis");
    world.apply(&redis_secret(&secret, redis_url))?;
    let mut other = api();
    other["metadata"]["name"] = OTHER.into();
    other["spec"]["redis"]["secretRef"]["name"] = secret.into();
    world.apply(&other)
}

/// Applies another WaterDataApi, and returns its key directory, which is complete.
async fn beside(world: &World, redis_url: &str) -> anyhow::Result<PatientDirectory> {
    apply_beside(world, redis_url)?;
    let place = format!("waterdataapi/{OTHER}");
    world
        .condition(&place, "DirectorySynced", "True/Published")
        .await?;
    let settings = ConnectionSettings::new(redis_url, None)?;
    let instance = Instance::new(&world.namespace, OTHER)?;
    Ok(Directory::new(settings.connect(Purpose::Directory), instance).into())
}

#[tokio::test]
async fn a_status_that_names_no_water_data_api_or_a_missing_one_ends_no_restriction() -> Result {
    let (world, mut operator) = World::running("misnamed").await?;
    let issued = world.in_force(&key("acme")).await?;
    let id = issued["status"]["keyId"].as_str().context("a key id")?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    for (pod, name) in [("operator-1", Some("missing")), ("operator-2", None)] {
        misname(&world, name)?;
        put_back(&world).await?;
        let was_suspended = pod != "operator-1";
        operator.stop(PATIENCE).await?;
        misname(&world, name)?;
        edit(&world, "acme", &json!({ "suspend": !was_suspended }))?;
        operator = world.operator(pod)?;
        let state = if was_suspended { "Active" } else { "Suspended" };
        holds(&world, &[format!("{id} Enterprise {state}")]).await?;
        put_back(&world).await?;
        ready(&world, "acme", &format!("True/{state}")).await?;
    }
    operator.stop(PATIENCE).await?;
    misname(&world, Some("missing"))?;
    delete(&world, "acme")?;
    let _next = world.operator("operator-3")?;
    world.gone("apikey/acme").await?;
    assert_eq!(gate.keys(), 0, "before the ApiKey goes");
    assert_eq!(world.published().await?, NOTHING);
    event(&world, "acme", "KeyRevoked").await
}

#[tokio::test]
async fn a_deletion_is_not_over_while_a_directory_that_may_hold_the_key_is_silent() -> Result {
    let (redis, world, operator) = World::on_own_redis("misnamed-silent").await?;
    world.in_force(&brought("acme", 'a')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let mut unplanned = key("unplanned");
    unplanned["spec"]["plan"] = "Typo".into();
    world.apply(&unplanned)?;
    stalled(&world, "unplanned", "PlanUnknown").await?;
    operator.stop(PATIENCE).await?;
    misname(&world, Some("missing"))?;
    delete(&world, "acme")?;
    delete(&world, "unplanned")?;
    redis.pause()?;
    let _next = world.operator("operator-1")?;
    // It never had a key.
    world.gone("apikey/unplanned").await?;
    let waits = |key: &Value| {
        let said = message(key, "Ready");
        said.contains("cannot be read") && said.contains(API)
    };
    becomes(&world, "apikey/acme", "a wait for the directory", waits).await?;
    redis.resume()?;
    world.gone("apikey/acme").await?;
    assert_eq!(gate.keys(), 0, "before the ApiKey goes");
    assert_eq!(world.published().await?, NOTHING);
    Ok(())
}

#[tokio::test]
async fn a_status_that_names_another_water_data_api_moves_no_key_there() -> Result {
    let start = async |namespace: &str| {
        let (world, operator) = World::running(namespace).await?;
        anyhow::Ok((world, operator))
    };
    // An operator that starts again sees the status before it has opened both directories.
    one_leadership("misnamed-other", start, async |world, _| {
        world.in_force(&brought("acme", 'b')).await?;
        let other = beside(world, &world.redis_url).await?;
        let declared = async || anyhow::Ok(other.observe().await?.meta.map(|meta| meta.seq));
        let before = declared().await?;
        misname(world, Some(OTHER))?;
        put_back(world).await?;
        ready(world, "acme", "True/Active").await?;
        holds(world, &["bbbbbbbbbbbb Enterprise Active"]).await?;
        misname(world, Some(OTHER))?;
        delete(world, "acme")?;
        world.gone("apikey/acme").await?;
        assert_eq!(world.published().await?, NOTHING);
        // Nothing was ever declared there.
        assert_eq!(declared().await?, before);
        event(world, "acme", "KeyRevoked").await
    })
    .await
}

#[tokio::test]
async fn a_key_that_a_lie_has_published_twice_stays_in_one_directory_and_is_suspended_there()
-> Result {
    let (world, operator) = World::running("misnamed-twice").await?;
    world.in_force(&brought("acme", '8')).await?;
    operator.stop(PATIENCE).await?;
    misname(&world, Some(OTHER))?;
    apply_beside(&world, &world.redis_url)?;
    let _next = world.operator("operator-1")?;
    // The first build of its directory goes by the status.
    let other = beside(&world, &world.redis_url).await?;
    assert_eq!(other.stored().await?.len(), 1);
    edit(&world, "acme", &json!({ "suspend": true }))?;
    ready(&world, "acme", "True/Suspended").await?;
    holds(&world, &NOTHING).await?;
    let stored = other.stored().await?;
    let states = stored
        .values()
        .map(|found| found.record.as_ref().map(|record| record.state));
    assert!(states.eq([Some(KeyState::Suspended)]), "{stored:?}");
    Ok(())
}

#[tokio::test]
async fn a_key_is_suspended_and_revoked_though_its_spec_follows_a_lying_status() -> Result {
    let (world, mut operator) = World::running("misnamed-spec").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let namespace = &world.namespace;
    let mut other = None;
    for (name, digit) in [("missing", 'e'), (OTHER, 'f')] {
        world.in_force(&brought("acme", digit)).await?;
        if name == OTHER {
            other = Some(beside(&world, &world.redis_url).await?);
        }
        operator.stop(PATIENCE).await?;
        misname(&world, Some(name))?;
        let follows = json!({ "apiRef": { "name": name }, "suspend": true });
        edit(&world, "acme", &follows)?;
        operator = world.operator(&format!("{name}-1"))?;
        let id = digit.to_string().repeat(12);
        holds(&world, &[format!("{id} Enterprise Suspended")]).await?;
        let stays =
            format!("WaterDataApi {namespace}/{name}, but the key was issued at {namespace}/{API}");
        says(&world, "apikey/acme", "Accepted=False/ApiMismatch", &stays).await?;
        put_back(&world).await?;
        operator.stop(PATIENCE).await?;
        misname(&world, Some(name))?;
        delete(&world, "acme")?;
        operator = world.operator(&format!("{name}-2"))?;
        world.gone("apikey/acme").await?;
        assert_eq!(gate.keys(), 0, "{name}");
        assert_eq!(world.published().await?, NOTHING, "{name}");
    }
    let other = other.context("the other WaterDataApi")?;
    assert!(other.stored().await?.is_empty());
    event(&world, "acme", "KeyRevoked").await
}

#[tokio::test]
async fn a_key_that_stays_is_neither_moved_nor_lost_while_its_directory_is_silent() -> Result {
    let (redis, world, operator) = World::on_own_redis("misnamed-stays").await?;
    world.in_force(&brought("acme", '9')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let other = beside(&world, &Redis::shared().await?.url()).await?;
    operator.stop(PATIENCE).await?;
    misname(&world, Some(OTHER))?;
    edit(&world, "acme", &json!({ "apiRef": { "name": OTHER } }))?;
    let _next = world.operator("operator-1")?;
    let (object, stays) = ("apikey/acme", "False/ApiMismatch");
    world.condition(object, "Accepted", stays).await?;
    put_back(&world).await?;
    redis.pause()?;
    edit(&world, "acme", &json!({ "suspend": true }))?;
    reported(&world, "acme").await?;
    let waits = "Ready=False/StoreUnavailable";
    let told = says(&world, object, waits, "").await?;
    assert_eq!(shown(&told, "Accepted"), stays, "{told}");
    // Now nothing in the object says where the key is.
    misname(&world, Some(OTHER))?;
    let silent = format!(
        "spec.apiRef names no WaterDataApi that holds keys of this ApiKey, and the key directory of the WaterDataApi \
         {}/{API}, which may, cannot be read",
        world.namespace
    );
    says(&world, object, waits, &silent).await?;
    assert!(other.stored().await?.is_empty());
    assert_eq!(gate.keys(), 1);
    redis.resume()?;
    put_back(&world).await?;
    holds(&world, &["999999999999 Enterprise Suspended"]).await?;
    world.condition(object, "Accepted", stays).await?;
    assert!(other.stored().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn an_apikey_that_never_had_a_key_goes_back_to_its_specs_water_data_api_after_a_lie() -> Result
{
    let (world, _operator) = World::running("misnamed-once").await?;
    let bound = |to: &str| json!({ "spec": { "apiKeys": { "accountBinding": to } } });
    world.patch(OBJECT, &bound("NamespaceLabel"), &[])?;
    let other = beside(&world, &world.redis_url).await?;
    let mut named = key("acme");
    named["spec"]["apiRef"] = json!({ "name": API });
    world.apply(&named)?;
    stalled(&world, "acme", "AccountNotBound").await?;
    // While it is refused, the name in the status counts as long as a directory holds its key.
    for name in ["missing", OTHER] {
        misname(&world, Some(name))?;
        put_back(&world).await?;
        stalled(&world, "acme", "AccountNotBound").await?;
    }
    world.patch(OBJECT, &bound("None"), &[])?;
    let issued = ready(&world, "acme", "True/Active").await?;
    assert_eq!(issued["status"]["api"]["name"], API);
    assert_eq!(shown(&issued, "Accepted"), "True/Admitted");
    assert!(other.stored().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_key_whose_directory_is_silent_is_published_in_no_other_one_that_its_status_names()
-> Result {
    let (redis, world, _operator) = World::on_own_redis("misnamed-waits").await?;
    world.in_force(&brought("acme", 'd')).await?;
    let _gate = Gate::start(&world, "gate-0", GRACE).await?;
    let other = beside(&world, &Redis::shared().await?.url()).await?;
    redis.pause()?;
    misname(&world, Some(OTHER))?;
    let silent = format!("{}/{API}, which may, cannot be read", world.namespace);
    // Gates serve it meanwhile.
    let unknown = "Synced=Unknown/StoreUnavailable";
    says(&world, "apikey/acme", unknown, &silent).await?;
    edit(&world, "acme", &json!({ "suspend": true }))?;
    let waits = "Ready=False/StoreUnavailable";
    says(&world, "apikey/acme", waits, &silent).await?;
    assert!(other.stored().await?.is_empty());
    redis.resume()?;
    put_back(&world).await?;
    holds(&world, &["dddddddddddd Enterprise Suspended"]).await?;
    assert!(other.stored().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_key_waits_for_its_silent_directory_while_its_status_names_a_missing_water_data_api()
-> Result {
    let (redis, world, operator) = World::on_own_redis("misnamed-living").await?;
    world.in_force(&brought("acme", '7')).await?;
    let _gate = Gate::start(&world, "gate-0", GRACE).await?;
    operator.stop(PATIENCE).await?;
    misname(&world, Some("missing"))?;
    edit(&world, "acme", &json!({ "suspend": true }))?;
    redis.pause()?;
    let _next = world.operator("operator-1")?;
    // It is not given up as one of no WaterDataApi, which would be looked at again after a minute.
    let waits = |key: &Value| {
        let said = message(key, "Ready");
        said.contains("cannot be read") && said.contains(API)
    };
    becomes(&world, "apikey/acme", "a wait for the directory", waits).await?;
    redis.resume()?;
    holds(&world, &["777777777777 Enterprise Suspended"]).await?;
    put_back(&world).await
}

#[tokio::test]
async fn an_apikey_that_never_had_a_key_waits_for_no_silent_directory_that_might_have_held_one()
-> Result {
    let (redis, world, _operator) = World::on_own_redis("misnamed-never").await?;
    world.synced().await?;
    let _gate = Gate::start(&world, "gate-0", GRACE).await?;
    beside(&world, &Redis::shared().await?.url()).await?;
    redis.pause()?;
    let mut named = key("named");
    named["spec"]["apiRef"] = json!({ "name": OTHER });
    world.in_force(&named).await?;
    // Whom it admits cannot be read any more: it might hold keys of an ApiKey that names none, and only the other one
    // is known to admit that.
    spoil_api(&world)?;
    let undecodable = "True/Undecodable";
    world.condition(OBJECT, "Stalled", undecodable).await?;
    let issued = world.in_force(&key("unnamed")).await?;
    assert_eq!(issued["status"]["api"]["name"], OTHER);
    Ok(())
}

#[tokio::test]
async fn release_revokes_a_key_whose_status_names_a_missing_water_data_api() -> Result {
    let (world, operator) = World::running("misnamed-release").await?;
    world.in_force(&brought("acme", 'c')).await?;
    operator.stop(PATIENCE).await?;
    misname(&world, Some("missing"))?;
    delete(&world, "acme")?;
    released(&world, false).await?;
    world.gone("apikey/acme").await?;
    assert_eq!(world.published().await?, NOTHING);
    Ok(())
}
