//! A webhook or another controller undoes what the operator writes of an ApiKey and its Secret. It is not fought, what
//! restricts a key is in force all the same, and a condition names the cause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use water_harness::{ControlPlane, ControlPlaneOptions, Redis};
use water_kit::operator::objects::Objects;
use water_kit::operator::world::{PATIENCE, World, api, brought, key, shown};

use crate::Result;
use crate::audit::writes;
use crate::faults::refused_writes::suspend_in_time;
use crate::policies::{MUTATING, change, stays, writes_of};
use crate::steps::{becomes, ready, says};

/// Most writes of one object …
const WRITES: usize = 10;
/// … within this time.
const MINUTE: Duration = Duration::from_secs(60);
/// Pause of another controller.
const LOOK: Duration = Duration::from_millis(50);
/// Labels of an ApiKey and of its Secret.
const ACCOUNT: &str = "waterdata.dev/account";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Another controller, which takes labels away until it is dropped.
struct Controller {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Controller {
    /// Takes a label of each of these objects away.
    fn start(objects: &Objects, labels: [(&'static str, &'static str); 2]) -> Self {
        let (objects, stops) = (objects.clone(), Arc::<AtomicBool>::default());
        let is_stopped = Arc::clone(&stops);
        let thread = thread::spawn(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                for (object, label) in labels {
                    let found = objects.get(object).unwrap_or_default();
                    if found["metadata"]["labels"][label].is_string() {
                        let patch = json!({ "metadata": { "labels": { label: null } } });
                        // One that fails is tried again.
                        let _ = objects.patch(object, &patch);
                    }
                }
                thread::sleep(LOOK);
            }
        });
        let thread = Some(thread);
        Self { stops, thread }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A condition in CEL: what is written has that name and that label.
fn has(name: &str, label: &str) -> String {
    format!(
        "object.metadata.name == '{name}' && has(object.metadata.labels) && '{label}' in object.metadata.labels"
    )
}

/// A change of a JSON patch: the label goes.
fn without(label: &str) -> String {
    let path = label.replace('/', "~1");
    format!("JSONPatch{{op: 'remove', path: '/metadata/labels/{path}'}}")
}

/// Counts the operator's writes by object.
fn counts(world: &World) -> anyhow::Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for write in writes(world)? {
        let object = write.split(' ').nth(1).context("an object")?;
        *counts.entry(object.to_owned()).or_default() += 1;
    }
    Ok(counts)
}

#[tokio::test]
async fn fault_49_what_a_webhook_or_a_controller_undoes_is_not_fought_but_named_and_delays_no_restriction()
-> Result {
    let options = ControlPlaneOptions {
        flags: MUTATING,
        ..ControlPlaneOptions::DEFAULT
    };
    let cluster = ControlPlane::start_with(options).await?;
    let redis = Redis::shared().await?;
    let world = World::on(cluster, "undone-writes", &redis.url()).await?;
    world.apply(&api())?;
    let operator = world.operator("operator-0")?;
    for (name, digit) in [("stripped", 'a'), ("fought", 'b')] {
        world.in_force(&brought(name, digit)).await?;
    }
    for name in ["amended", "mended"] {
        world.in_force(&key(name)).await?;
    }

    // A policy takes the account's label off one ApiKey, and a label off the Secret of another. That one is besides
    // never the same after a write.
    let keys = writes_of("waterdata.dev", &["apikeys"]);
    let (is_meant, patch) = (has("stripped", ACCOUNT), format!("[{}]", without(ACCOUNT)));
    let of_key = change(&world, "keys", &keys, &is_meant, &patch)?;
    let secrets = writes_of("", &["secrets"]);
    let is_meant = format!(
        "request.operation == 'UPDATE' && {}",
        has("amended-apikey", MANAGED_BY)
    );
    let patch = format!(
        "[{}, JSONPatch{{op: 'add', path: '/metadata/annotations/seen', value: oldObject.metadata.resourceVersion}}]",
        without(MANAGED_BY)
    );
    let of_secret = change(&world, "secrets", &secrets, &is_meant, &patch)?;
    let before = counts(&world)?;
    let meant = [
        ("apikey/stripped", ACCOUNT),
        ("secret/amended-apikey", MANAGED_BY),
    ];
    for (object, label) in meant {
        stays(&world, object, label, false).await?;
    }
    // A controller does the same to two others.
    let labels = [
        ("apikey/fought", ACCOUNT),
        ("secret/mended-apikey", MANAGED_BY),
    ];
    let controller = Controller::start(&world.objects, labels);

    let began = Instant::now();
    world
        .wait("a minute", PATIENCE, async || {
            ensure!(began.elapsed() >= MINUTE, "{:?}", began.elapsed());
            Ok(())
        })
        .await?;
    let mut after = counts(&world)?;
    for (object, count) in &mut after {
        *count -= before.get(object).copied().unwrap_or_default();
    }
    println!("writes within a minute: {after:?}");
    ensure!(after.values().all(|count| *count <= WRITES), "{after:?}");

    let words = "another controller or a webhook undoes";
    for (name, wanted) in [
        ("stripped", "Degraded=True/WriteConflict"),
        ("fought", "Degraded=True/WriteConflict"),
        ("amended", "Stalled=True/WriteConflict"),
        ("mended", "Stalled=True/WriteConflict"),
    ] {
        says(&world, &format!("apikey/{name}"), wanted, words).await?;
    }
    for name in ["stripped", "fought", "amended", "mended"] {
        suspend_in_time(&world, name).await?;
    }

    drop(controller);
    of_key.lift()?;
    of_secret.lift()?;
    for (object, label) in meant {
        stays(&world, object, label, true).await?;
    }
    // The next leader tries at once.
    operator.stop(PATIENCE).await?;
    let _next = world.operator("operator-1")?;
    for name in ["stripped", "fought", "amended", "mended"] {
        ready(&world, name, "True/Suspended").await?;
        becomes(
            &world,
            &format!("apikey/{name}"),
            "labelled",
            |found: &Value| {
                found["metadata"]["labels"][ACCOUNT] == "acme"
                    && shown(found, "Degraded").is_empty()
            },
        )
        .await?;
    }
    Ok(())
}
