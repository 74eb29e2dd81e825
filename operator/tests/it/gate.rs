//! A gate as the operator knows it: a pod at the API server, and a real copy of the key directory
//! whose lease it keeps.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::task::JoinHandle;
use water_domain::{AccountId, KeyHash, Timestamp};
use water_harness::Redis;
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, GateIdentity, Instance, Replica, Validity};

use crate::rights::ACCOUNT;
use crate::world::{API, World};

/// The grace of a gate that nobody tells another.
pub const GRACE: Duration = Duration::from_secs(120);

const UNPOISONED: &str = "no test panics while it holds this";

/// A gate's pod with its copy.
pub struct Gate {
    pub name: String,
    instance: Instance,
    replica: Arc<Replica>,
    following: Mutex<Option<JoinHandle<()>>>,
}

impl Gate {
    /// A ready pod of that name whose gate has loaded the directory and follows it.
    pub async fn start(world: &World, name: &str, grace: Duration) -> Result<Self> {
        let uid = pod(world, name, true, Started::Before)?;
        let connection = ConnectionSettings::new(&world.redis_url, None)?;
        let identity = GateIdentity {
            pod: name.into(),
            uid,
            grace,
        };
        let instance = Instance::new(&world.namespace, API)?;
        let connection = connection.connect(Purpose::Directory);
        let replica = Replica::new(connection, instance.clone(), identity);
        let gate = Self {
            name: name.into(),
            instance,
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

    /// Makes its lease look as if it had been renewed that long before it was.
    pub async fn age_lease(&self, redis: &Redis, by: Duration) -> Result<()> {
        let older = "local lease = cjson.decode(redis.call('HGET', KEYS[1], ARGV[1])) \
            lease.renewed = lease.renewed - ARGV[2] \
            redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(lease))";
        let (gates, millis) = (self.instance.gates(), by.as_millis().to_string());
        redis
            .command(&["EVAL", older, "1", &gates, &self.name, &millis])
            .await?;
        Ok(())
    }

    /// Whether it accepts a key, by its hash as a status names it.
    pub fn accepts(&self, hash: &str) -> Result<bool> {
        Ok(self.account(&hash.parse()?)?.is_some())
    }

    /// The account for which it accepts a key.
    pub fn account(&self, hash: &KeyHash) -> Result<Option<AccountId>> {
        let view = self.replica.view().context("no copy")?;
        let record = view.record(hash);
        let record = record.filter(|record| record.validity(view.now()) == Validity::Active);
        Ok(record.map(|record| record.account.clone()))
    }

    /// Redis' time, as it knows it.
    #[allow(dead_code, reason = "only the random sequences ask for it")]
    pub fn now(&self) -> Option<Timestamp> {
        self.replica.now()
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

/// When a gate's process started.
#[derive(Clone, Copy)]
pub enum Started {
    /// Before the directory was rebuilt for the last time.
    Before,
    /// After that.
    After,
}

/// A gate's pod, ready or not. Returns its uid.
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

/// The pod ends, as its kubelet says at last.
pub fn end_pod(world: &World, name: &str) -> Result<()> {
    let now = ["--force", "--grace-period=0", "--wait=false"];
    world
        .kubectl(&[&["delete", "pod", name][..], &now].concat())
        .map(drop)
}
