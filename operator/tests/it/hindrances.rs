//! Tests of obstacles that keep a WaterDataApi from being rolled out, and of the work that goes on nevertheless.

use anyhow::ensure;
use serde_json::json;

use crate::Result;
use crate::steps::{
    NOTHING, OBJECT, allow, edit, forbid, holds, look_again, measured, message, ready, reported,
    revoke, says, spoil_api, until,
};
use crate::world::{API, PATIENCE, World, api, brought, shown};

#[tokio::test]
async fn a_missing_secret_is_named_with_the_remedy_and_revocation_waits_for_redis_alone() -> Result
{
    let world = World::new("no-secret").await?;
    world.kubectl(&["delete", "secret", "postgres"])?;
    world.apply(&api())?;
    let _operator = world.operator("operator-0")?;
    let lacks = "postgres.secretRef.name names the Secret postgres, which does not exist";
    says(&world, OBJECT, "Stalled=True/SecretInvalid", lacks).await?;
    world.in_force(&brought("acme", '3')).await?;
    revoke(&world, "acme").await?;
    holds(&world, &NOTHING).await?;
    world.kubectl(&["delete", "secret", "redis"])?;
    let lacks = "spec.redis.secretRef.name names the Secret redis, which does not exist";
    let found = says(&world, OBJECT, "Stalled=True/SecretInvalid", lacks).await?;
    let remedy = format!("{lacks}: create it with the keys operator-url, gate-url");
    assert_eq!(message(&found, "Stalled"), remedy);
    Ok(())
}

#[tokio::test]
async fn an_object_of_a_childs_name_is_never_touched_and_that_of_an_earlier_api_is_waited_for()
-> Result {
    let world = World::new("foreign-child").await?;
    let foreign = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "water-data-gate" },
        "spec": { "ports": [{ "port": 7 }] },
    });
    world.apply(&foreign)?;
    world.apply(&api())?;
    let _operator = world.operator("operator-0")?;
    let conflict = "True/ObjectConflict";
    world.condition(OBJECT, "Stalled", conflict).await?;
    let port = &world.get("service/water-data-gate")?["spec"]["ports"][0]["port"];
    assert_eq!(*port, 7);
    let owner = json!({
        "apiVersion": "waterdata.dev/v1", "kind": "WaterDataApi", "name": API, "uid": "that-of-an-earlier-one",
    });
    let owned = json!({ "metadata": { "ownerReferences": [owner] } });
    world.patch("service/water-data-gate", &owned, &[])?;
    world
        .condition(OBJECT, "Reconciling", "True/Waiting")
        .await?;
    // The garbage collector, which is not there, comes at last.
    world.kubectl(&["delete", "service", "water-data-gate"])?;
    let migrating = "True/Migrating";
    world
        .condition(OBJECT, "Reconciling", migrating)
        .await
        .map(drop)
}

#[tokio::test]
async fn what_the_api_server_refuses_is_told_to_the_api_and_to_its_keys() -> Result {
    let world = World::new("forbidden-secrets").await?;
    let rules = forbid(&world, "namespaces")?;
    world.apply(&api())?;
    world.apply(&brought("acme", '3'))?;
    let _operator = world.operator("operator-0")?;
    let error = "False/ApiServerError";
    world.condition(OBJECT, "DirectorySynced", error).await?;
    let waiting = "Reconciling=True/Waiting";
    says(&world, "apikey/acme", waiting, "forbidden").await?;
    allow(&world, &rules)?;
    ready(&world, "acme", "True/Active").await.map(drop)
}

#[tokio::test]
async fn a_key_whose_namespace_cannot_be_read_says_so_and_takes_restrictions() -> Result {
    let (world, _operator) = World::running("unread-namespace").await?;
    let bind = [
        "label",
        "namespace",
        &world.namespace,
        "account.waterdata.dev/acme=",
    ];
    world.cluster.kubectl(&bind)?;
    let mut bound = api();
    bound["spec"]["apiKeys"]["accountBinding"] = "NamespaceLabel".into();
    world.apply(&bound)?;
    world.in_force(&brought("acme", 'a')).await?;
    let rules = forbid(&world, "namespaces")?;
    // What was in force stays Ready, in addition to the cause.
    let refusal = "Unknown/ApiServerError";
    let refused = async || {
        look_again(&world, "apikey/acme", "refused")?;
        let found = world.get("apikey/acme")?;
        ensure!(shown(&found, "Synced") == refusal, "{found}");
        Ok(found)
    };
    let found = until(&world, refusal, refused).await?;
    ensure!(shown(&found, "Ready") == "True/Active", "{found}");
    ensure!(message(&found, "Synced").contains("namespaces"), "{found}");
    edit(&world, "acme", &json!({ "suspend": true }))?;
    holds(&world, &["aaaaaaaaaaaa Enterprise Suspended"]).await?;
    says(
        &world,
        "apikey/acme",
        "Ready=False/ApiServerError",
        "namespaces",
    )
    .await?;
    // What widens waits.
    edit(&world, "acme", &json!({ "suspend": false }))?;
    reported(&world, "acme").await?;
    says(
        &world,
        "apikey/acme",
        "Ready=False/ApiServerError",
        "namespaces",
    )
    .await?;
    holds(&world, &["aaaaaaaaaaaa Enterprise Suspended"]).await?;
    allow(&world, &rules)?;
    ready(&world, "acme", "True/Active").await.map(drop)
}

#[tokio::test]
async fn fault_16_an_api_that_cannot_be_read_stalls_and_is_told_of_once() -> Result {
    let world = World::new("unreadable-api").await?;
    world.apply(&api())?;
    spoil_api(&world)?;
    let operator = world.operator("operator-0")?;
    let undecodable = "True/Undecodable";
    world.condition(OBJECT, "Stalled", undecodable).await?;
    world.told(API, &["Undecodable"]).await?;
    let passes = r#"water_operator_passes_total{kind="WaterDataApi",outcome="Done"}"#;
    measured(&world, &operator, passes).await?;
    look_again(&world, OBJECT, "again")?;
    operator.stop(PATIENCE).await?;
    let _next = world.operator("operator-1")?;
    let readable = json!({ "spec": { "components": { "gate": { "resources": null } } } });
    world.patch(OBJECT, &readable, &[])?;
    let migrating = "True/Migrating";
    world.condition(OBJECT, "Reconciling", migrating).await?;
    world.told(API, &["Undecodable", "RolloutStarted"]).await
}
