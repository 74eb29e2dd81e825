//! Programs that run while the operator is measured.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use water_harness::programs::Program;
use water_harness::{ControlPlane, ControlPlaneOptions, scratch_directory, wait_until};
use water_keystore::{Directory, Instance};

use super::Scale;
use super::api::{Api, NAMESPACE, PLAN};
use super::audit::Audit;
use super::process::Operator;
use crate::nginx::Nginx;
use crate::programs::Server;
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
/// Values without which the chart refuses to be rendered.
const VALUES: [&str; 6] = [
    "--set",
    "postgres.existingSecret=postgres",
    "--set",
    "redis.existingSecret=redis",
    "--set",
    "api.exposure.trustedProxiesNone=true",
];

/// Servers, the leading operator, and the gates.
pub struct Site {
    pub api: Api,
    pub store: Store,
    pub leader: Operator,
    pub gates: Vec<Server>,
    pub scale: Scale,
    control_plane: ControlPlane,
    instance: Instance,
    kubeconfig: PathBuf,
    operators: Cell<usize>,
    service: Nginx,
}

impl Site {
    /// Starts everything, with a WaterDataApi and the operator's rights.
    pub async fn start(scale: Scale) -> Result<Self> {
        eprintln!("starting the servers for {} ApiKeys", scale.keys);
        let instance = Instance::new(NAMESPACE, INSTALLATION)?;
        let store = Store::start(&[&instance]).await?;
        let service = Nginx::service().await?;
        let control_plane = ControlPlane::start_with(SETTLED).await?;
        Operator::install_definitions(&control_plane.kubeconfig_path()).await?;
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        control_plane.apply(&namespace.to_string())?;
        control_plane.apply(&rights()?)?;
        let kubeconfig = scratch_directory("operator")?.join("kubeconfig");
        let rights = control_plane.kubeconfig_of(NAMESPACE, ACCOUNT)?;
        fs::write(&kubeconfig, rights)?;
        for object in objects(&store, &instance) {
            control_plane.apply(&object.to_string())?;
        }
        let mut site = Self {
            api: Api::new(&control_plane),
            leader: Operator::start(&kubeconfig, "operator")?,
            gates: Vec::new(),
            operators: Cell::default(),
            service,
            control_plane,
            store,
            instance,
            kubeconfig,
            scale,
        };
        // Gates start once there is a key directory.
        site.until_complete(0).await?;
        for number in 0..GATES {
            let name = format!("gate-{number}");
            let uid = site.pod(&name)?;
            let pod = [("WATER_POD_NAME", &*name), ("WATER_POD_UID", &*uid)];
            let service = site.service.address();
            let gate = Server::gate(&site.store, &site.instance, service, &pod);
            site.gates.push(gate.await?);
        }
        Ok(site)
    }

    /// Starts another operator, as a new pod.
    pub fn operator(&self) -> Result<Operator> {
        let number = self.operators.replace(self.operators.get() + 1);
        Operator::start(&self.kubeconfig, &format!("operator-{number}"))
    }

    /// Waits until the key directory is complete and holds so many keys.
    pub async fn until_complete(&self, keys: u64) -> Result<()> {
        let directory = self.directory()?;
        wait_until("a complete key directory", SOON, async || {
            let meta = directory.observe().await?.meta.context("no directory")?;
            ensure!(meta.complete && meta.counts.records >= keys, "{meta:?}");
            Ok(())
        })
        .await
    }

    /// Key directory.
    pub fn directory(&self) -> Result<Directory> {
        self.store.directory(&self.instance)
    }

    /// Requests to the API server from here on.
    pub fn audit(&self) -> Result<Audit> {
        Audit::from_now(&self.control_plane, self.scale.quiet)
    }

    /// Makes a gate's pod, ready as its kubelet would say. Returns its uid.
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
        let (namespace, pod) = (format!("--namespace={NAMESPACE}"), format!("pod/{name}"));
        let patch = ["--subresource=status", "--type=merge", "--patch"];
        let patched = ["patch", &pod, &namespace].into_iter().chain(patch);
        let status = status.to_string();
        let patched: Vec<&str> = patched.chain([&*status]).collect();
        self.control_plane.kubectl(&patched)?;
        let uid = "--output=jsonpath={.metadata.uid}";
        self.control_plane.kubectl(&["get", &pod, &namespace, uid])
    }
}

/// Rights that the chart gives the operator.
fn rights() -> Result<String> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/water-data");
    let output = Command::new(Program::Helm.find_or_build(&mut |_| {})?)
        .args(["template", "water", "--namespace", NAMESPACE])
        .args(["--show-only", "templates/rbac.yaml"])
        .args(VALUES)
        .arg(chart)
        .output()
        .context("start helm")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{error}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Secrets of the stores, and the WaterDataApi.
fn objects(store: &Store, instance: &Instance) -> [Value; 3] {
    let (operator, gate) = (store.url(instance, "operator"), store.url(instance, "gate"));
    // Nobody asks it: there is no node that a pod of a service could run on.
    let nobody = "postgres://water@127.0.0.1:1/water";
    let secret = |name: &str, urls: Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name, "namespace": NAMESPACE }, "stringData": urls,
        })
    };
    let postgres = json!({ "owner-url": nobody, "writer-url": nobody, "reader-url": nobody });
    let redis = json!({ "operator-url": operator, "gate-url": gate });
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
        secret("redis", redis),
        installation,
    ]
}
