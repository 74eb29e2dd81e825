//! What keeps a WaterDataApi from being rolled out, and what goes on nevertheless.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::Result;
use crate::store_faults::{admin_address, metrics};
use crate::world::{API, PATIENCE, World, api, brought};

#[tokio::test]
async fn a_missing_secret_is_named_with_the_remedy() -> Result {
    let world = World::new("no-secret").await?;
    world.kubectl(&["delete", "secret", "redis"])?;
    world.apply(&api())?;
    let _operator = world.operator("operator-0")?;
    let stalled = world
        .condition("waterdataapi/water-data", "Stalled", "True/SecretInvalid")
        .await?;
    let conditions = stalled["status"]["conditions"]
        .as_array()
        .context("conditions")?;
    let message = conditions
        .iter()
        .find(|condition| condition["type"] == "Stalled")
        .map(|found| &found["message"]);
    assert_eq!(
        message.unwrap(),
        "spec.redis.secretRef.name names the Secret redis, which does not exist: create it with the keys \
         operator-url, gate-url"
    );
    Ok(())
}

#[tokio::test]
async fn a_foreign_object_of_a_childs_name_is_never_touched() -> Result {
    let world = World::new("foreign-child").await?;
    let foreign = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "water-data-gate" },
        "spec": { "ports": [{ "port": 7 }] },
    });
    world.apply(&foreign)?;
    world.apply(&api())?;
    let _operator = world.operator("operator-0")?;
    world
        .condition("waterdataapi/water-data", "Stalled", "True/ObjectConflict")
        .await?;
    assert_eq!(
        world.get("service/water-data-gate")?["spec"]["ports"][0]["port"],
        7
    );
    Ok(())
}

#[tokio::test]
async fn revocation_waits_for_redis_secret_only() -> Result {
    let world = World::new("no-postgres").await?;
    world.kubectl(&["delete", "secret", "postgres"])?;
    world.apply(&api())?;
    let _operator = world.operator("operator-0")?;
    world
        .condition("waterdataapi/water-data", "Stalled", "True/SecretInvalid")
        .await?;
    world.in_force(&brought("acme", '3')).await?;
    world.kubectl(&["delete", "apikey", "acme"])?;
    assert!(world.published().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn what_the_api_server_refuses_is_told_to_the_api_and_to_its_keys() -> Result {
    let world = World::new("forbidden-secrets").await?;
    let role = "role/water-operator";
    let rules = world.get(role)?["rules"].clone();
    let without: Vec<&Value> = rules
        .as_array()
        .context("rules")?
        .iter()
        .filter(|rule| rule["resources"] != json!(["namespaces"]))
        .collect();
    world.patch(role, &json!({ "rules": without }), &[])?;
    world.apply(&api())?;
    world.apply(&brought("acme", '3'))?;
    let _operator = world.operator("operator-0")?;
    world
        .condition(
            "waterdataapi/water-data",
            "DirectorySynced",
            "False/ApiServerError",
        )
        .await?;
    let waiting = world
        .condition("apikey/acme", "Reconciling", "True/Waiting")
        .await?;
    assert!(
        waiting["status"].to_string().contains("forbidden"),
        "{waiting}"
    );
    world.patch(role, &json!({ "rules": rules }), &[])?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    Ok(())
}

#[tokio::test]
async fn an_api_that_cannot_be_read_stalls_and_is_told_of_once() -> Result {
    let world = World::new("unreadable-api").await?;
    let mut unreadable = api();
    // The schema bounds no number among the quantities, and the operator reads 32 bits.
    let requests = json!({ "memory": 3_000_000_000_u64 });
    unreadable["spec"]["components"] = json!({ "gate": { "resources": { "requests": requests } } });
    world.apply(&unreadable)?;
    let operator = world.operator("operator-0")?;
    world
        .condition("waterdataapi/water-data", "Stalled", "True/Undecodable")
        .await?;
    world.told(API, &["Undecodable"]).await?;
    let address = admin_address(&world, &operator).await?;
    let counted = async || {
        let told = metrics(&address).await?;
        let done = r#"water_operator_passes_total{kind="WaterDataApi",outcome="Done"}"#;
        ensure!(told.contains(done), "{told}");
        Ok(())
    };
    world
        .wait("its passes to be counted", PATIENCE, counted)
        .await?;
    world.kubectl(&["annotate", "waterdataapi", API, "looked-at=again"])?;
    operator.stop(PATIENCE).await?;
    let _next = world.operator("operator-1")?;
    world.apply(&api())?;
    world
        .condition("waterdataapi/water-data", "Reconciling", "True/Migrating")
        .await?;
    world.told(API, &["Undecodable", "RolloutStarted"]).await
}

#[tokio::test]
async fn what_an_earlier_api_of_the_name_left_is_waited_for() -> Result {
    let world = World::new("leftover").await?;
    let owner = json!({
        "apiVersion": "waterdata.dev/v1", "kind": "WaterDataApi", "name": API, "uid": "that-of-an-earlier-one",
    });
    let left = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "water-data-gate", "ownerReferences": [owner] },
        "spec": { "ports": [{ "port": 7 }] },
    });
    world.apply(&left)?;
    world.apply(&api())?;
    let _operator = world.operator("operator-0")?;
    world
        .condition("waterdataapi/water-data", "Reconciling", "True/Waiting")
        .await?;
    // The garbage collector, which is not there, comes at last.
    world.kubectl(&["delete", "service", "water-data-gate"])?;
    world
        .condition("waterdataapi/water-data", "Reconciling", "True/Migrating")
        .await?;
    Ok(())
}
