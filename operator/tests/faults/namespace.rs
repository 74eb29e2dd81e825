//! A namespace with 200 keys is deleted. The controller of namespaces deletes ApiKeys and Secrets in any order,
//! and refuses what is created there.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use water_domain::KeyHash;
use water_harness::{Program, Redis};

use crate::clients::Expected;
use crate::population::in_force;
use crate::stage::Stage;
use crate::world::{PATIENCE, World, key};

const TENANT: &str = "of-200-keys";
const KEYS: usize = 200;

/// Every second one is brought along by its hash.
fn keys(world: &World) -> impl Iterator<Item = Value> {
    let api = json!({ "name": "water-data", "namespace": world.namespace });
    (0..KEYS).map(move |number| {
        let mut key = key(&format!("key-{number}"));
        key["metadata"]["namespace"] = TENANT.into();
        key["spec"]["apiRef"] = api.clone();
        if number % 2 == 0 {
            key["spec"]["material"] = json!({ "hash": { "sha256": brought(number) } });
        }
        key
    })
}

/// A hash whose first twelve digits, which are the key id, are no other's.
fn brought(number: usize) -> String {
    format!("{number:012}{:052}", 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_goes_leaves_no_key_that_works_and_touches_no_other() -> Result<()> {
    let redis = Redis::start().await?;
    let world = World::of_all_namespaces_on("fault-tenant", &redis.url(), &[]).await?;
    let _controller = world.cluster.start_namespace_controller()?;
    let scope = |operator: Program| operator.env("WATER_SCOPE", "Cluster");
    let stage = Stage::of(world, redis, scope).await?;
    let from = json!({ "spec": { "apiKeys": { "allowedNamespaces": { "from": "All" } } } });
    stage.objects.edit_api(&from).await?;
    in_force(&stage, "beside", 'b').await?;
    let tenant = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": TENANT } });
    stage.world.cluster.apply(&tenant.to_string())?;
    let list: Vec<Value> = keys(&stage.world).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": list });
    stage.world.cluster.apply(&list.to_string())?;
    let all = async || {
        let known = stage.gate.keys();
        ensure!(known == KEYS + 1, "{known} keys");
        Ok(())
    };
    stage.wait("all keys", PATIENCE, all).await?;
    let hashes: Vec<KeyHash> = (0..KEYS)
        .step_by(2)
        .map(|number| Ok(brought(number).parse()?))
        .collect::<Result<_>>()?;
    let expect = |expected: Expected| {
        let hashes = hashes.iter();
        hashes.for_each(|hash| stage.clients.expect(*hash, expected));
    };
    expect(Expected::Accepted);
    let released = stage.releases.count();
    expect(Expected::Either);
    let delete = ["delete", "namespace", TENANT, "--wait=false"];
    stage.world.cluster.kubectl(&delete)?;
    stage.world.gone(&format!("namespace/{TENANT}")).await?;
    expect(Expected::Refused);
    let released = stage.releases.count() - released;
    ensure!(released == KEYS, "{released} ApiKeys were let go");
    ensure!(stage.gate.keys() == 1, "{} keys", stage.gate.keys());
    stage.holds_for_good().await
}
