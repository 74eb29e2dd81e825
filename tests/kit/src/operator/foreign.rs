//! Objects with much foreign metadata, and the memory that an operator needs for them.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use water_harness::{
    ControlPlane, ControlPlaneOptions, Fault, Interceptor, Moment, Process, Redis, Which,
};
use water_resources::ApiKey;

use super::objects::{name, shown};
use super::world::{PATIENCE, World, api, brought, key};

/// Foreign annotations of each object, in bytes.
const FOREIGN: usize = 250_000;

/// The answer to a watch that has fallen too far behind: a list follows.
const EXPIRED: &str = concat!(
    "HTTP/1.1 410 Gone\r\nContent-Type: application/json\r\nContent-Length: 84\r\nConnection: close\r\n\r\n",
    r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}"#,
);
/// Line that an operator logs once its caches are filled.
const FILLED: &str = "the watches have told of everything";

/// Memory by which the peaks of operators grow through foreign annotations, in KiB.
#[derive(Debug)]
pub struct Growth {
    /// The leader's, which acts on each change and lists everything again.
    pub leader: u64,
    /// A standby's, which lists everything again.
    pub standby: u64,
    /// The growth of an operator that starts afterwards, compared with the standby, which started before.
    pub cold_start: u64,
}

/// Annotates so many stray Secrets with the label of keys' Secrets and so many ApiKeys, at an API server whose lists
/// come in pages, as those of Kubernetes 1.33.
pub async fn growth(namespace: &str, strays: usize, keys: usize) -> Result<Growth> {
    let options = ControlPlaneOptions {
        flags: &["--feature-gates=WatchList=false"],
        ..ControlPlaneOptions::DEFAULT
    };
    let cluster = ControlPlane::start_with(options).await?;
    let mut world = World::on(cluster, namespace, &Redis::shared().await?.url()).await?;
    let mut interceptor = Interceptor::default();
    let (address, authority) = (world.cluster.address(), world.cluster.authority_pem());
    world.reach_api_server_at(interceptor.before_api_server(address, authority).await?)?;
    world.apply(&api())?;
    let leader = world.operator("operator-0")?;
    populate(&world, strays, keys).await?;
    let standby = world.operator("operator-1")?;
    world.logged(&standby, FILLED).await?;
    let before = [peak_kib(&leader)?, peak_kib(&standby)?];
    annotate(&world, strays, keys)?;
    let started = world.operator("operator-2")?;
    world.logged(&started, FILLED).await?;
    list_again(&world, &interceptor).await?;
    Ok(Growth {
        leader: peak_kib(&leader)?.saturating_sub(before[0]),
        standby: peak_kib(&standby)?.saturating_sub(before[1]),
        cold_start: peak_kib(&started)?.saturating_sub(before[1]),
    })
}

/// Returns the most memory that an operator has had, in KiB.
fn peak_kib(operator: &Process) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", operator.id()))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.context("VmHWM")?.trim().trim_end_matches(" kB");
    Ok(kib.parse()?)
}

fn stray(number: usize) -> String {
    format!("stray-{number}")
}

fn theirs(number: usize) -> String {
    format!("theirs-{number}")
}

async fn populate(world: &World, strays: usize, keys: usize) -> Result<()> {
    for number in 0..strays {
        let labels = json!({ "waterdata.dev/api-key": "nobody" });
        let metadata = json!({ "name": stray(number), "labels": labels });
        let stray = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
        world.objects.create(&stray)?;
    }
    for number in 0..keys {
        let mut theirs = brought(&theirs(number), '0');
        theirs["spec"]["material"]["hash"]["sha256"] = format!("{number:064x}").into();
        world.objects.create(&theirs)?;
    }
    let is_active = |key: &ApiKey| shown(key, "Ready") == "True/Active";
    world
        .wait("each ApiKey to be Ready", PATIENCE, async || {
            let keys = world.objects.keys()?;
            let waiting = keys.iter().find(|key| !is_active(key));
            ensure!(waiting.is_none(), "{:?}", waiting.map(name));
            Ok(())
        })
        .await
}

fn annotate(world: &World, strays: usize, keys: usize) -> Result<()> {
    let notes = json!({ "example.com/notes": "n".repeat(FOREIGN) });
    let notes = json!({ "metadata": { "annotations": notes } });
    let strays = (0..strays).map(|number| format!("secret/{}", stray(number)));
    let keys = (0..keys).map(|number| format!("apikey/{}", theirs(number)));
    let mut all = strays.chain(keys);
    all.try_for_each(|object| world.objects.patch(&object, &notes))
}

/// Has all operators list both kinds again, and waits until the leader sees what is changed after that.
async fn list_again(world: &World, interceptor: &Interceptor) -> Result<()> {
    let resumed = Which::Every("allowWatchBookmarks=true&resourceVersion=");
    let expired = Fault::Answer(EXPIRED.into());
    interceptor.order(resumed, Moment::BeforeDelivery, expired);
    interceptor.cut();
    world
        .wait("lists of both kinds", PATIENCE, async || {
            let asked = interceptor.requests();
            let lists = |kind: &str| {
                let is_list = |line: &&String| line.contains(kind) && line.contains("limit=");
                asked.iter().filter(is_list).count()
            };
            let counts = ["/apikeys?", "/secrets?"].map(lists);
            // The operators are three.
            ensure!(counts.iter().all(|count| *count >= 3), "{counts:?}");
            Ok(())
        })
        .await?;
    interceptor.recall();
    world.in_force(&key("after")).await.map(drop)
}
