//! A gate as the operator knows it: a pod at the API server, and a real copy of the key directory
//! whose lease it keeps.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::task::JoinHandle;
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, GateIdentity, Instance, Replica};

use crate::world::{API, World};

/// The grace of a gate that nobody tells another.
pub const GRACE: Duration = Duration::from_secs(120);

const UNPOISONED: &str = "no test panics while it holds this";

/// A gate's pod with its copy.
pub struct Gate {
    pub name: String,
    replica: Arc<Replica>,
    following: Mutex<Option<JoinHandle<()>>>,
}

impl Gate {
    /// A ready pod of that name whose gate has loaded the directory and follows it.
    pub async fn start(world: &World, name: &str, grace: Duration) -> Result<Self> {
        let uid = pod(world, name, true)?;
        let connection = ConnectionSettings::new(&world.redis_url, None)?;
        let identity = GateIdentity {
            pod: name.into(),
            uid,
            grace,
        };
        let replica = Replica::new(
            connection.connect(Purpose::Directory),
            Instance::new(&world.namespace, API)?,
            identity,
        );
        let gate = Self {
            name: name.into(),
            replica: Arc::new(replica),
            following: Mutex::default(),
        };
        gate.follow();
        gate.replica.completed().await;
        Ok(gate)
    }

    /// Follows the feed, and acknowledges.
    pub fn follow(&self) {
        let replica = Arc::clone(&self.replica);
        let task = tokio::spawn(async move {
            replica.run().await;
        });
        *self.following.lock().expect(UNPOISONED) = Some(task);
    }

    /// Says nothing any more; its lease stands.
    pub fn fall_silent(&self) {
        if let Some(task) = self.following.lock().expect(UNPOISONED).take() {
            task.abort();
        }
    }

    /// Falls silent, and its lease is gone too.
    pub async fn lose_lease(&self) -> Result<()> {
        self.fall_silent();
        Ok(self.replica.leave().await?)
    }

    /// What its copy says of keys.
    pub fn keys(&self) -> usize {
        self.replica.status().keys
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.fall_silent();
    }
}

/// A gate's pod, ready or not. Answers its uid.
pub fn pod(world: &World, name: &str, ready: bool) -> Result<String> {
    world.apply(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": {
            "app.kubernetes.io/name": "water-gate", "app.kubernetes.io/instance": API,
        } },
        "spec": {
            // Somewhere, or its deletion would not wait for anybody.
            "nodeName": "nowhere",
            "serviceAccountName": "operator",
            "automountServiceAccountToken": false,
            "containers": [{ "name": "gate", "image": "registry.example/water/water-gate:1.2.3" }],
        },
    }))?;
    let state = if ready { "True" } else { "False" };
    let status = json!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": state }],
    } });
    world.patch(&format!("pod/{name}"), &status, &["--subresource=status"])?;
    let pod = world.get(&format!("pod/{name}"))?;
    Ok(pod["metadata"]["uid"].as_str().context("a uid")?.to_owned())
}

/// The pod ends, as its kubelet says at last.
pub fn end_pod(world: &World, name: &str) -> Result<()> {
    let now = ["--force", "--grace-period=0", "--wait=false"];
    world
        .kubectl(&[&["delete", "pod", name][..], &now].concat())
        .map(drop)
}
