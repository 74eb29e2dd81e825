//! A standby's caches: filled before it leads, and no older than what the leader before it has reported.

mod long;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_harness::HttpClient;

use crate::Result;
use crate::steps::{admin_address, logs, until};
use crate::world::World;

#[tokio::test]
async fn an_operator_is_ready_to_take_over_once_its_caches_are_full() -> Result {
    let world = World::new("ready").await?;
    let role = "role/water-operator";
    let rules = world.get(role)?["rules"].clone();
    let all = rules.as_array().context("rules")?.iter();
    let is_of_keys = |rule: &&Value| rule["resources"][0] == "apikeys";
    let blind: Vec<&Value> = all.filter(|rule| !is_of_keys(rule)).collect();
    world.patch(role, &json!({ "rules": blind }), &[])?;
    let operator = world.operator("operator-0")?;
    let address = admin_address(&world, &operator).await?;
    let missing = async |wanted: &[&str]| {
        let mut client = HttpClient::connect(&address).await?;
        let answer = client.request("GET", "/ready", &[]).await?;
        ensure!(answer.json()?["missing"] == json!(wanted), "{answer:?}");
        Ok(())
    };
    logs(&world, &operator, "a watch fails").await?;
    let lease_read = async || missing(&["caches filled"]).await;
    until(&world, "the lease", lease_read).await?;
    world.patch(role, &json!({ "rules": rules }), &[])?;
    let full = async || missing(&[]).await;
    until(&world, "full caches", full).await
}
