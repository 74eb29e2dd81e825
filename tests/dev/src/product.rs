//! The product on the cluster: Secrets for the stores, the chart, sample keys, and a first request.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use water_harness::HttpClient;

use crate::cluster::{Cluster, HOST, NODE_ADDRESS, POD_NETWORK, REGISTRY};
use crate::credentials::Credentials;
use crate::process::run;
use crate::progress::Step;
use crate::project::project;
use crate::{portal, wait};

/// The namespace of the product.
pub const NAMESPACE: &str = "water";

/// The Helm release, and the WaterDataApi that it installs.
const RELEASE: &str = "water-data";

/// Longest rollout on a busy machine with two cores: a minute where nothing else runs.
const ROLLOUT_LIMIT: Duration = Duration::from_secs(300);

/// Seconds, unless the machine is busy.
const FIRST_REQUEST_LIMIT: Duration = Duration::from_secs(60);

/// The sample ApiKey of an account that may use the API and has histories.
pub const ENTERPRISE: &str = "sample-enterprise";

/// The sample ApiKey of an account whose plan has no access.
pub const FREE: &str = "sample-free";

/// Applies the Secrets and the ConfigMap that the chart's values name.
pub fn apply_secrets(cluster: &Cluster, credentials: &Credentials) -> Result<()> {
    let secret = |name: &str, data: Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": data})
    };
    let postgres = json!({
        "owner-url": credentials.postgres_owner_url(),
        "writer-url": credentials.postgres_writer_url(),
        "reader-url": credentials.postgres_reader_url(),
    });
    let redis = json!({
        "operator-url": credentials.redis_operator_url(),
        "gate-url": credentials.redis_gate_url(),
        "portal-url": credentials.redis_portal_url(),
    });
    let portal = json!({"client-secret": credentials.portal_client});
    let authority = fs::read_to_string(cluster.file("pki/ca.crt"))
        .context("cannot read the cluster's authority")?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
        secret("water-postgres", postgres),
        secret("water-redis", redis),
        secret(portal::CLIENT_SECRET, portal),
        {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": portal::AUTHORITY, "namespace": NAMESPACE}, "data": {"ca.crt": authority}},
    ]});
    cluster.apply(&list.to_string())
}

/// Installs the chart with the images of `version`, or upgrades what is installed. `more` are values
/// of the chart, `name=value`, numbers among them.
pub fn install(cluster: &Cluster, version: &str, more: &[String]) -> Result<()> {
    // An interrupted Helm leaves its release pending, and would refuse to touch it.
    let pending =
        "owner=helm,name=water-data,status in (pending-install,pending-upgrade,pending-rollback)";
    run(kubectl(cluster).args(["delete", "secret", "--selector", pending]))?;
    let values = [
        format!("image.registry={REGISTRY}"),
        format!("image.tag={version}"),
        "postgres.existingSecret=water-postgres".into(),
        "redis.existingSecret=water-redis".into(),
        format!("api.exposure.ingress.host={HOST}"),
    ];
    // All requests come through the ingress controller: what it says of its clients is believed.
    let proxies = format!("api.exposure.trustedProxies=[\"{POD_NETWORK}\"]");
    let mut helm = cluster.helm();
    helm.args([
        "upgrade",
        "--install",
        RELEASE,
        "--namespace",
        NAMESPACE,
        "--timeout=5m",
    ])
    // Fields that somebody has tried with kubectl give way.
    .arg("--force-conflicts");
    for value in &values {
        helm.args(["--set-string", value]);
    }
    for value in more {
        helm.args(["--set", value]);
    }
    helm.args(["--set-json", &proxies])
        .args(["--set-json", &format!("portal={}", portal::values())])
        .arg(project().join("charts/water-data"));
    run(&mut helm).map_err(|error| explain(cluster, error))?;
    cluster.apply(include_str!("../manifests/any-host.yaml"))
}

/// Returns the version that is installed.
pub fn installed_version(cluster: &Cluster) -> Result<String> {
    let name = format!("waterdataapi/{RELEASE}");
    run(kubectl(cluster).args(["get", &name, "--output=jsonpath={.spec.image.tag}"]))
}

/// Waits until the WaterDataApi is Ready with `version`.
pub fn await_ready(cluster: &Cluster, version: &str, step: &Step) -> Result<()> {
    let what = format!("the WaterDataApi is Ready with version {version}");
    let waited = wait::until(ROLLOUT_LIMIT, &what, || {
        let Some(api) = get(cluster, &format!("waterdataapi/{RELEASE}")) else {
            return Ok(None);
        };
        step.say(
            ready(&api)["message"]
                .as_str()
                .unwrap_or("waiting for the operator"),
        );
        Ok((is_ready(&api) && api["status"]["version"] == version).then_some(()))
    });
    waited.map_err(|error| explain(cluster, error))
}

/// Applies the sample keys and waits until every gate knows them.
pub fn issue_sample_keys(cluster: &Cluster) -> Result<()> {
    cluster.apply(include_str!("../manifests/api-keys.yaml"))?;
    let waited = wait::until(Duration::from_secs(60), "the sample keys are Ready", || {
        let keys = [ENTERPRISE, FREE].map(|name| format!("apikey/{name}"));
        let ready = |key: String| get(cluster, &key).is_some_and(|key| is_ready(&key));
        Ok(keys.into_iter().all(ready).then_some(()))
    });
    waited.map_err(|error| explain(cluster, error))
}

/// Returns the text of a sample key.
pub fn sample_key(cluster: &Cluster, name: &str) -> Result<String> {
    let template = "go-template={{index .data \"api-key\" | base64decode}}";
    let secret = format!("secret/{name}-apikey");
    run(kubectl(cluster).args(["get", &secret, "--output", template]))
}

/// Sends one request through the ingress and returns the answer's body; anything but 200 is an error.
pub fn first_request(cluster: &Cluster) -> Result<String> {
    let authorization = format!("Bearer {}", sample_key(cluster, ENTERPRISE)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the client")?;
    let mut last = String::from("none");
    // The key is Ready; what may still be missing is the ingress controller's knowledge of the
    // Ingress, and the data.
    let answered = wait::until(
        FIRST_REQUEST_LIMIT,
        "the first request is answered 200",
        || {
            let answered = runtime.block_on(async {
                let mut client = HttpClient::connect((NODE_ADDRESS, 80)).await?;
                client
                    .request(
                        "GET",
                        "/api/v1/stress?dept=34",
                        &[("Authorization", &authorization)],
                    )
                    .await
            });
            let answer = match answered {
                Ok(answer) => answer,
                // The ingress controller may not listen yet.
                Err(error) => {
                    last = format!("{error:#}");
                    return Ok(None);
                }
            };
            last = format!(
                "{} {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            );
            Ok((answer.status == 200).then_some(answer))
        },
    );
    let answer = answered
        .map_err(|error| explain(cluster, error.context(format!("the last answer: {last}"))))?;
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}

fn get(cluster: &Cluster, object: &str) -> Option<Value> {
    let text = run(kubectl(cluster).args(["get", object, "--output=json"])).ok()?;
    serde_json::from_str(&text).ok()
}

fn ready(object: &Value) -> &Value {
    let conditions = object["status"]["conditions"].as_array();
    let ready =
        conditions.and_then(|list| list.iter().find(|condition| condition["type"] == "Ready"));
    ready.unwrap_or(&Value::Null)
}

/// Whether the object is ready, and says so of its present declaration.
fn is_ready(object: &Value) -> bool {
    let current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    current && ready(object)["status"] == "True"
}

/// Adds the state of the cluster to an error.
fn explain(cluster: &Cluster, error: anyhow::Error) -> anyhow::Error {
    let shown = [
        "get pods,jobs,waterdataapis --output=wide",
        "get events --field-selector=type!=Normal --sort-by=.lastTimestamp",
        "logs --selector=app.kubernetes.io/part-of=water-data --tail=3 --prefix --max-log-requests=30",
    ];
    let show = |words: &str| run(kubectl(cluster).args(words.split(' '))).ok();
    let world = Vec::from_iter(shown.into_iter().filter_map(show)).join("\n");
    error.context(format!(
        "{world}\nTo look further: cargo dev kubectl -n {NAMESPACE} describe pods\nThe failure"
    ))
}

fn kubectl(cluster: &Cluster) -> Command {
    let mut kubectl = cluster.kubectl();
    kubectl.args(["--namespace", NAMESPACE]);
    kubectl
}
