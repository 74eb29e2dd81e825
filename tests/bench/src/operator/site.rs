//! Everything that runs while the operator is measured.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use water_harness::{ControlPlane, ControlPlaneOptions, scratch_directory, wait_until};
use water_keystore::{Directory, Instance};

use super::api::{Api, NAMESPACE, PLAN};
use super::audit::Audit;
use super::process::Operator;
use crate::chart;
use crate::gate::BODY;
use crate::gate::process::Gate;
use crate::nginx::{Configuration, Nginx};
use crate::store::Store;

/// Longer than a start takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// etcd is compacted each minute, and not every five: after two quiet minutes, all is as after ten. The API
/// server serves pages of a list from etcd once the last change is older than what was compacted.
const SETTLED: ControlPlaneOptions = ControlPlaneOptions {
    flags: &["--etcd-compaction-interval=1m"],
    ..ControlPlaneOptions::DEFAULT
};
const INSTALLATION: &str = "water-data";
const ACCOUNT: &str = "water-operator";
/// Gates that accept keys.
const GATES: usize = 3;

/// All servers, and what they are told.
pub struct Site {
    pub control_plane: ControlPlane,
    pub api: Api,
    pub store: Store,
    instance: Instance,
    service: Nginx,
    kubeconfig: PathBuf,
    operators: Cell<usize>,
}

impl Site {
    /// The servers, with a WaterDataApi and the operator's rights, and without an operator.
    pub async fn start() -> Result<Self> {
        let instance = Instance::new(NAMESPACE, INSTALLATION)?;
        let store = Store::start(&[&instance]).await?;
        let service = Configuration::new(include_str!("../../nginx/service.conf"));
        let service = Nginx::start(service.set("body", BODY)).await?;
        let control_plane = ControlPlane::start_with(SETTLED).await?;
        Operator::install_definitions(&control_plane.kubeconfig_path()).await?;
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        control_plane.apply(&namespace.to_string())?;
        control_plane.apply(&chart::rendered(NAMESPACE, "rbac", &[])?)?;
        let kubeconfig = scratch_directory("operator")?.join("kubeconfig");
        let rights = control_plane.kubeconfig_of(NAMESPACE, ACCOUNT)?;
        fs::write(&kubeconfig, rights)?;
        for object in objects(&store, &instance) {
            control_plane.apply(&object.to_string())?;
        }
        Ok(Self {
            api: Api::new(&control_plane),
            control_plane,
            store,
            instance,
            service,
            kubeconfig,
            operators: Cell::default(),
        })
    }

    /// Starts an operator as a pod that there was not before.
    pub fn operator(&self) -> Result<Operator> {
        let number = self.operators.replace(self.operators.get() + 1);
        Operator::start(&self.kubeconfig, &format!("operator-{number}"))
    }

    /// Starts the gates, once there is a key directory for them.
    pub async fn gates(&self) -> Result<Vec<Gate>> {
        self.complete(0).await?;
        let mut gates = Vec::new();
        for number in 0..GATES {
            let name = format!("gate-{number}");
            let uid = self.pod(&name)?;
            let pod = [("WATER_POD_NAME", &*name), ("WATER_POD_UID", &*uid)];
            let service = self.service.address();
            gates.push(Gate::start(&self.store, &self.instance, service, &pod).await?);
        }
        Ok(gates)
    }

    /// Waits until the key directory is complete and holds so many keys.
    pub async fn complete(&self, keys: u64) -> Result<()> {
        let directory = self.directory()?;
        wait_until("a complete key directory", SOON, async || {
            let meta = directory.observe().await?.meta.context("no directory")?;
            ensure!(meta.complete && meta.counts.records >= keys, "{meta:?}");
            Ok(())
        })
        .await
    }

    /// The key directory.
    pub fn directory(&self) -> Result<Directory> {
        self.store.directory(&self.instance)
    }

    /// What the API server is asked from here on.
    pub fn audit(&self) -> Result<Audit> {
        Audit::from_now(&self.control_plane)
    }

    /// A gate's pod, ready as its kubelet would say. Returns its uid.
    fn pod(&self, name: &str) -> Result<String> {
        let labels = json!({
            "app.kubernetes.io/name": "water-gate", "app.kubernetes.io/instance": INSTALLATION,
        });
        let container = json!({ "name": "gate", "image": "registry.example/water-gate:1" });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels },
            "spec": {
                "nodeName": "nowhere",
                "serviceAccountName": ACCOUNT,
                "automountServiceAccountToken": false,
                "containers": [container],
            },
        });
        self.control_plane.apply(&pod.to_string())?;
        let status = json!({ "status": {
            "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
        } });
        let (namespace, status) = (format!("--namespace={NAMESPACE}"), status.to_string());
        let pod = format!("pod/{name}");
        self.control_plane.kubectl(&[
            "patch",
            &pod,
            &namespace,
            "--subresource=status",
            "--type=merge",
            "--patch",
            &status,
        ])?;
        let uid = "--output=jsonpath={.metadata.uid}";
        self.control_plane.kubectl(&["get", &pod, &namespace, uid])
    }
}

/// The stores' Secrets and the WaterDataApi.
fn objects(store: &Store, instance: &Instance) -> [Value; 3] {
    let (operator, gate) = (store.operator_url(instance), store.gate_url(instance));
    // Nobody asks it: there is no node that a pod of a service could run on.
    let nobody = "postgres://water@127.0.0.1:1/water";
    let secret = |name: &str, urls: Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name, "namespace": NAMESPACE }, "stringData": urls,
        })
    };
    let postgres = json!({ "owner-url": nobody, "writer-url": nobody, "reader-url": nobody });
    let installation = json!({
        "apiVersion": "waterdata.dev/v1", "kind": "WaterDataApi",
        "metadata": { "name": INSTALLATION, "namespace": NAMESPACE },
        "spec": {
            "image": { "registry": "registry.example/water", "tag": "1.2.3" },
            "postgres": { "secretRef": { "name": "postgres" } },
            "redis": { "secretRef": { "name": "redis" } },
            "plans": [{
                "name": PLAN, "access": "Allowed",
                "requestsPerMinute": 100_000, "requestsPerDay": 100_000_000,
            }],
            "exposure": { "ingress": { "host": "water.example" } },
        },
    });
    [
        secret("postgres", postgres),
        secret(
            "redis",
            json!({ "operator-url": operator, "gate-url": gate }),
        ),
        installation,
    ]
}
