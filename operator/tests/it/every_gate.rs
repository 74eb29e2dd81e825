//! A deletion at every gate: three gates' own processes, each asked at its own address from the moment
//! at which the API server has answered the request that deletes.

use std::time::Duration;

use anyhow::{bail, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, interval};
use water_domain::{KeyPrefix, PlainKey};
use water_harness::HttpClient;

use crate::Result;
use crate::gate_process::GateProcess;
use crate::steps::count;
use crate::world::{PATIENCE, World, key, unlimited};

const KEYS: u16 = 12;
const TARGET: &str = "/api/v1/stress?dept=34";
/// Interval between two requests with a deleted key.
const ASK_EVERY: Duration = Duration::from_millis(5);

#[tokio::test]
async fn a_deleted_key_is_refused_by_each_of_three_gates_within_a_second_of_the_api_servers_answer()
-> Result {
    let world = World::new("every-gate").await?;
    world.apply(&unlimited())?;
    let _operator = world.operator("operator-0")?;
    world.synced().await?;
    let mut gates = Vec::new();
    for name in ["gate-0", "gate-1", "gate-2"] {
        gates.push(GateProcess::start(&world, name).await?);
    }
    let keys: Vec<PlainKey<'static>> = (0..KEYS).map(plain).collect();
    let objects = keys.iter().enumerate();
    let objects = objects.map(|(number, key)| brought(&world, number, key));
    let objects: Vec<Value> = objects.collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    world.cluster.apply(&list.to_string())?;
    count(&world, KEYS.into()).await?;

    let mut api_server = world.cluster.proxy().connect().await?;
    let mut latencies = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let mut probes = try_join_all(gates.iter().map(GateProcess::connect)).await?;
        for probe in &mut probes {
            accepted(probe, key).await?;
        }
        let path = format!(
            "/apis/waterdata.dev/v1/namespaces/{}/apikeys/{}",
            world.namespace,
            name(number)
        );
        let answer = api_server.request("DELETE", &path, &[]).await?;
        ensure!(answer.status == 200, "{answer:?}");
        let answered = Instant::now();
        let refused = probes.iter_mut().map(|probe| refused(probe, key));
        let last = try_join_all(refused).await?.into_iter().max();
        latencies.push(last.unwrap_or(answered).duration_since(answered));
    }
    latencies.sort();
    println!("{KEYS} deletions: refused by three gates after {latencies:?}");
    // One of them may have waited for a busy machine.
    let almost_all = latencies[latencies.len() - 2];
    assert!(almost_all <= Duration::from_secs(1), "{latencies:?}");
    Ok(())
}

fn name(number: usize) -> String {
    format!("deleted-{number:03}")
}

fn plain(number: u16) -> PlainKey<'static> {
    let mut random = [7; 48];
    random[..2].copy_from_slice(&number.to_be_bytes());
    random[46..].copy_from_slice(&number.to_be_bytes());
    PlainKey::generate(&KeyPrefix::default(), &random)
}

/// An ApiKey of a separate account that brings the key along.
fn brought(world: &World, number: usize, plain: &PlainKey<'static>) -> Value {
    let mut key = key(&name(number));
    key["metadata"]["namespace"] = json!(world.namespace);
    key["spec"]["accountId"] = json!(format!("account-{number}"));
    key["spec"]["material"] = json!({ "hash": { "sha256": plain.hash().to_string() } });
    key
}

/// Redis has the key already; the gate follows.
async fn accepted(probe: &mut HttpClient, key: &PlainKey<'static>) -> Result {
    let mut answer = probe.get(TARGET, key.expose()).await?;
    let begun = Instant::now();
    while answer.status == 401 && begun.elapsed() < PATIENCE {
        answer = probe.get(TARGET, key.expose()).await?;
    }
    ensure!(answer.status == 200, "{answer:?}");
    Ok(())
}

/// Time at which the gate has refused the key. 429 without the account's limits: one wrong key of many.
async fn refused(probe: &mut HttpClient, key: &PlainKey<'static>) -> anyhow::Result<Instant> {
    let mut pace = interval(ASK_EVERY);
    loop {
        pace.tick().await;
        let answer = probe.get(TARGET, key.expose()).await?;
        match (answer.status, answer.header("ratelimit")) {
            (401, _) | (429, None) => return Ok(Instant::now()),
            (200, _) => {}
            _ => bail!("{answer:?}"),
        }
    }
}
