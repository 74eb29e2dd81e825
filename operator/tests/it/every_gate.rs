//! A deletion at every gate: three gates' own processes, each asked at its own address.

mod measurements;

use anyhow::{bail, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use water_domain::{KeyPrefix, PlainKey};
use water_harness::HttpClient;

use crate::Result;
use crate::gate_process::GateProcess;
use crate::steps::{count, revoke, until};
use crate::world::{World, key, unlimited};

const TARGET: &str = "/api/v1/stress?dept=34";

/// A world with an operator, its gates, and the keys that were brought along.
type Installed = (World, Vec<GateProcess>, Vec<PlainKey<'static>>);

/// Makes a world with an operator, three gates, and so many keys.
async fn with_gates(namespace: &str, keys: u16) -> anyhow::Result<Installed> {
    let world = World::new(namespace).await?;
    world.apply(&unlimited())?;
    world.operator("operator-0")?;
    world.synced().await?;
    let mut gates = Vec::new();
    for name in ["gate-0", "gate-1", "gate-2"] {
        gates.push(GateProcess::start(&world, name).await?);
    }
    let keys: Vec<PlainKey<'static>> = (0..keys).map(plain).collect();
    let objects = keys.iter().enumerate();
    let objects = objects.map(|(number, key)| brought(&world, number, key));
    let objects: Vec<Value> = objects.collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    world.cluster.apply(&list.to_string())?;
    count(&world, keys.len()).await?;
    Ok((world, gates, keys))
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

/// Opens a connection to each gate, and waits until it accepts the key: Redis has it already, and the gates follow.
async fn probes(
    world: &World,
    gates: &[GateProcess],
    key: &PlainKey<'static>,
) -> anyhow::Result<Vec<HttpClient>> {
    let mut probes = try_join_all(gates.iter().map(GateProcess::connect)).await?;
    for probe in &mut probes {
        until(world, "the gate to accept the key", async || {
            ensure!(accepts(world, probe, key).await?, "refused");
            Ok(())
        })
        .await?;
    }
    Ok(probes)
}

/// Waits for a gate's word about the key, and returns whether it accepts it. 429 without the account's limits: one
/// wrong key of many.
async fn accepts(
    world: &World,
    probe: &mut HttpClient,
    key: &PlainKey<'static>,
) -> anyhow::Result<bool> {
    until(world, "the gate's word", async || {
        let answer = probe.get(TARGET, key.expose()).await?;
        match (answer.status, answer.header("ratelimit")) {
            (200, _) => Ok(true),
            (401, _) | (429, None) => Ok(false),
            _ => bail!("{answer:?}"),
        }
    })
    .await
}

#[tokio::test]
async fn a_key_whose_api_key_is_gone_is_refused_by_each_of_three_gates() -> Result {
    let (world, gates, keys) = with_gates("every-gate", 4).await?;
    for (number, key) in keys.iter().enumerate() {
        let mut probes = probes(&world, &gates, key).await?;
        revoke(&world, &name(number)).await?;
        for probe in &mut probes {
            let is_accepted = accepts(&world, probe, key).await?;
            ensure!(!is_accepted, "{} is gone", name(number));
        }
    }
    Ok(())
}
