//! A gate as the operator knows it: a pod at the API server, and a real copy of the key directory
//! whose lease it keeps.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::task::JoinHandle;
use water_domain::{AccountId, KeyHash, Timestamp};
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, GateIdentity, Instance, Replica, Validity};

use super::rights::ACCOUNT;
use super::samples::API;
use super::world::World;
use crate::patient_directory::patiently;

/// Grace of a gate without another setting: longer than any test, so that a silent gate is not let go before a test
/// has seen that it is waited for. Leases that nobody renewed for an hour are dropped.
pub const GRACE: Duration = Duration::from_secs(1800);

const UNPOISONED: &str = "no test panics while it holds this";

/// A gate's pod with its copy.
pub struct Gate {
    /// The pod's name.
    pub name: String,
    replica: Arc<Replica>,
    following: Mutex<Option<JoinHandle<()>>>,
}

impl Gate {
    /// Starts a ready pod of that name whose gate has loaded the directory and follows it.
    pub async fn start(world: &World, name: &str, grace: Duration) -> Result<Self> {
        Self::start_at(&world.redis_url, world, name, grace).await
    }

    /// Starts a ready pod of that name whose gate reaches Redis at this URL.
    pub async fn start_at(
        redis_url: &str,
        world: &World,
        name: &str,
        grace: Duration,
    ) -> Result<Self> {
        let gate = Self::following(redis_url, world, name, grace, true)?;
        gate.replica.completed().await;
        Ok(gate)
    }

    /// Makes a pod of that name that is not ready, whose gate has not completed a load yet.
    pub fn loading(redis_url: &str, world: &World, name: &str, grace: Duration) -> Result<Self> {
        Self::following(redis_url, world, name, grace, false)
    }

    fn following(
        redis_url: &str,
        world: &World,
        name: &str,
        grace: Duration,
        is_ready: bool,
    ) -> Result<Self> {
        let started = if is_ready {
            Started::Before
        } else {
            Started::After
        };
        let uid = pod(world, name, is_ready, started)?;
        let connection = ConnectionSettings::new(redis_url, None)?;
        let identity = GateIdentity {
            pod: name.into(),
            uid,
            grace,
        };
        let instance = Instance::new(&world.namespace, API)?;
        let connection = connection.connect(Purpose::Directory);
        let replica = Replica::new(connection, instance, identity);
        let gate = Self {
            name: name.into(),
            replica: Arc::new(replica),
            following: Mutex::default(),
        };
        gate.follow();
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

    /// Stops following; its lease remains.
    pub fn fall_silent(&self) {
        if let Some(task) = self.following.lock().expect(UNPOISONED).take() {
            task.abort();
        }
    }

    /// Stops following and deletes its lease.
    pub async fn lose_lease(&self) -> Result<()> {
        self.fall_silent();
        patiently(async || Ok(self.replica.leave().await?)).await
    }

    /// Whether it accepts a key, by its hash as a status names it.
    pub fn accepts(&self, hash: &str) -> Result<bool> {
        Ok(self.account(&hash.parse()?)?.is_some())
    }

    /// Returns the account for which it accepts a key.
    pub fn account(&self, hash: &KeyHash) -> Result<Option<AccountId>> {
        let view = self.replica.view().context("no copy")?;
        let record = view.record(hash);
        let record = record.filter(|record| record.validity(view.now()) == Validity::Active);
        Ok(record.map(|record| record.account.clone()))
    }

    /// Returns Redis' time, as it knows it.
    pub fn now(&self) -> Option<Timestamp> {
        self.replica.now()
    }

    /// Returns the number of keys in its copy.
    pub fn keys(&self) -> usize {
        self.replica.status().keys
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.fall_silent();
    }
}

/// Start of a gate's process.
#[derive(Clone, Copy)]
pub enum Started {
    /// Start before the last rebuild of the directory.
    Before,
    /// Start after it.
    After,
}

/// Applies a gate's pod, ready or not. Returns its uid.
pub fn pod(world: &World, name: &str, ready: bool, started: Started) -> Result<String> {
    world.apply(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": {
            "app.kubernetes.io/name": "water-gate", "app.kubernetes.io/instance": API,
        } },
        "spec": {
            // Somewhere, or its deletion would not wait for anybody.
            "nodeName": "nowhere",
            "serviceAccountName": ACCOUNT,
            "automountServiceAccountToken": false,
            "containers": [{ "name": "gate", "image": "registry.example/water/water-gate:1.2.3" }],
        },
    }))?;
    let state = if ready { "True" } else { "False" };
    let started = match started {
        Started::Before => "2020-01-01T00:00:00Z",
        Started::After => "2100-01-01T00:00:00Z",
    };
    let status = json!({ "status": {
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": state }],
        "containerStatuses": [{
            "name": "gate", "image": "registry.example/water/water-gate:1.2.3", "imageID": "",
            "ready": ready, "restartCount": 0, "state": { "running": { "startedAt": started } },
        }],
    } });
    world.patch(&format!("pod/{name}"), &status, &["--subresource=status"])?;
    let pod = world.get(&format!("pod/{name}"))?;
    Ok(pod["metadata"]["uid"].as_str().context("a uid")?.to_owned())
}

/// Ends the pod, as its kubelet says at last.
pub fn end_pod(world: &World, name: &str) -> Result<()> {
    let now = json!({ "gracePeriodSeconds": 0 });
    world.objects.delete_with(&format!("pod/{name}"), &now)
}
