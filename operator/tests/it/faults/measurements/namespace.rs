//! A namespace with 200 keys is deleted. The controller of namespaces deletes ApiKeys and Secrets in any order,
//! and refuses what is created there.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use water_domain::KeyHash;
use water_harness::Redis;
use water_kit::operator::clients::Expected;
use water_kit::operator::objects::Objects;
use water_kit::operator::stage::{Stage, converged};
use water_kit::operator::world::{PATIENCE, World, key};

const TENANT: &str = "of-200-keys";
const KEYS: usize = 200;
/// Time from the request to the namespace's end.
const WITHIN: Duration = Duration::from_secs(60);

/// Every second one is provided by its hash.
fn declared(stage: &Stage, number: usize) -> Value {
    let mut key = key(&format!("key-{number}"));
    key["spec"]["apiRef"] = json!({ "name": "water-data", "namespace": stage.namespace });
    if number.is_multiple_of(2) {
        key["spec"]["material"] = json!({ "hash": { "sha256": hash(number) } });
    }
    key
}

/// A hash whose first twelve digits, which are the key id, are no other's.
fn hash(number: usize) -> String {
    format!("{number:012}{:052}", 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_18_a_namespace_that_goes_leaves_no_key_that_works_and_touches_no_other() -> Result<()>
{
    let redis = Redis::start().await?;
    let world = World::of_all_namespaces_on("fault-tenant", &redis.url(), &[]).await?;
    let _controller = world.cluster.start_namespace_controller()?;
    let stage = Stage::of_world(world, redis).await?;
    let from = json!({ "spec": { "apiKeys": { "allowedNamespaces": { "from": "All" } } } });
    stage.objects.edit_api(&from)?;
    stage.bring("beside", 'b').await?;
    let tenant = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": TENANT } });
    stage.objects.create(&tenant)?;
    let objects = Objects::new(stage.cluster, TENANT);
    (0..KEYS).try_for_each(|number| objects.create(&declared(&stage, number)))?;
    let all = async || {
        let known = stage.gate.keys();
        ensure!(known == KEYS + 1, "{known} keys");
        Ok(())
    };
    stage.wait("all keys", PATIENCE, all).await?;
    let hashes = (0..KEYS).step_by(2).map(|number| Ok(hash(number).parse()?));
    let hashes: Vec<KeyHash> = hashes.collect::<Result<_>>()?;
    let expect = |expected: Expected| {
        let hashes = hashes.iter();
        hashes.for_each(|hash| stage.clients.expect(*hash, expected));
    };
    let released = stage.releases.count();
    expect(Expected::Either);
    let tenant = format!("namespace/{TENANT}");
    stage.objects.delete(&tenant)?;
    let asked = Instant::now();
    stage.gone(&tenant).await?;
    let took = asked.elapsed();
    ensure!(took < WITHIN, "{took:?}");
    converged(asked);
    expect(Expected::Refused);
    let released = stage.releases.count() - released;
    ensure!(released == KEYS, "{released} ApiKeys were released");
    ensure!(stage.gate.keys() == 1, "{} keys", stage.gate.keys());
    stage.holds_for_good().await
}
