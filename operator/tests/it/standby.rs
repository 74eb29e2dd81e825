//! A standby's caches: filled before it leads, and no older than what the leader before it has reported.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_harness::{HttpClient, Proxy};

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::rotation::Client;
use crate::steps::{admin_address, edit, logs, ready, until};
use crate::world::{PATIENCE, World, brought, key, shown};

/// Several of a standby's requests may first meet connections of which it does not know that they are
/// dead, each for ten seconds.
const OVER_DEAD_CONNECTIONS: Duration = Duration::from_secs(120);

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_leader_with_dead_watches_undoes_no_suspension() -> Result {
    let (world, leader) = World::running("dead-watches").await?;
    world.in_force(&brought("acme", 'a')).await?;
    let gate = Arc::new(Gate::start(&world, "gate-0", GRACE).await?);
    let proxy = Proxy::before(world.cluster.address()).await?;
    let standby = world.operator_through("operator-1", &proxy)?;
    logs(&world, &standby, "the watches have told of everything").await?;
    proxy.half_open();
    edit(&world, "acme", &json!({ "suspend": true }))?;
    ready(&world, "acme", "True/Suspended").await?;
    let client = Client::start(&gate, &"a".repeat(64));
    leader.stop(PATIENCE).await?;
    world.apply(&key("later"))?;
    world
        .wait("the standby to act", OVER_DEAD_CONNECTIONS, async || {
            let found = world.get("apikey/later")?;
            ensure!(shown(&found, "Ready") == "True/Active", "{found}");
            Ok(())
        })
        .await?;
    assert!(client.was_refused());
    assert!(!client.was_accepted(), "{}", standby.log_end());
    Ok(())
}
