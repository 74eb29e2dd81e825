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
use crate::world::{PATIENCE, World, key, unlimited};

const KEYS: u16 = 200;
const TARGET: &str = "/api/v1/stress?dept=34";
/// Between two requests with a deleted key.
const ASK_EVERY: Duration = Duration::from_millis(5);

#[tokio::test]
async fn a_deleted_key_is_refused_by_each_of_three_gates_within_a_second_of_the_api_servers_answer()
-> Result {
    let (world, _operator) = World::running("every-gate").await?;
    world.apply(&unlimited())?;
    world
        .condition(
            "waterdataapi/water-data",
            "DirectorySynced",
            "True/Published",
        )
        .await?;
    let gates = [
        GateProcess::start(&world, "gate-0").await?,
        GateProcess::start(&world, "gate-1").await?,
        GateProcess::start(&world, "gate-2").await?,
    ];
    let keys: Vec<PlainKey<'static>> = (0..KEYS).map(plain).collect();
    let objects = keys.iter().enumerate();
    let objects = objects.map(|(number, key)| brought(&world, number, key));
    let objects: Vec<Value> = objects.collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    world.cluster.apply(&list.to_string())?;
    let all = async || {
        let published = world.published().await?.len();
        ensure!(published == usize::from(KEYS), "{published} published");
        Ok(())
    };
    world.wait("all keys", PATIENCE, all).await?;

    let proxy = world.cluster.proxy();
    let mut api_server = proxy.connect().await?;
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
        let refused = try_join_all(refused).await?;
        let last = refused.into_iter().max().unwrap_or(answered);
        latencies.push(last.duration_since(answered));
    }
    latencies.sort();
    let at = |part: usize| latencies[(latencies.len() * part).div_ceil(100) - 1];
    println!(
        "{KEYS} deletions: refused by three gates after p50 {:?}, p99 {:?}, at most {:?}",
        at(50),
        at(99),
        at(100)
    );
    assert!(at(99) <= Duration::from_secs(1), "{latencies:?}");
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

/// An ApiKey of an account of its own that brings the key along.
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

/// When the gate has refused the key. 429 without the account's limits: one wrong key of many.
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
