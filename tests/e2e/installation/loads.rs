//! Loads that the chart runs: a file of a ConfigMap, and a register that answers from a separate pod.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use water_e2e::{Cluster, project};
use water_harness::certificates::{Authority, Purpose};

use super::{DOCUMENTED, shell::Shell};

/// A pod has to start, and the loader to connect.
const A_LOAD: Duration = Duration::from_secs(60);
/// The service asks for changes each second.
const SOON: Duration = Duration::from_secs(60);

/// Two départements; their levels follow from their indices until the register has their levels.
const STRESS: &str = "dept,stressIndex\n34,1.5\n35,0.5\n";
/// Levels of the register, the real ones of one day.
const REGISTER: &str = include_str!("../../../services/ingest/data/vigieau-2026-07-02.json");

/// Returns `ingest` of the chart's values: both loads.
fn values() -> Value {
    json!({ "ingest": {
        "vigieau": {
            "enabled": true,
            // On a day that does not come while the test runs: it starts the load itself.
            "schedule": "0 0 29 2 *",
            "url": "https://register/departements.json",
            "caConfigMap": "register",
        },
        "loads": [{
            "name": "stress",
            "dataset": "stress",
            "asOf": "2026-01-01",
            "source": { "configMap": { "name": "files", "key": "stress.csv" } },
            "flags": ["--allow-missing"],
        }],
    } })
}

/// Returns the register: a file behind HTTPS, with a separate authority.
fn register(cluster: &Cluster) -> Result<Vec<Value>> {
    let authority = Authority::new("register's authority")?;
    let certificate = authority.sign("register", None, &["register"], Purpose::Server)?;
    let node_program = cluster
        .kubectl
        .in_namespace("kube-system")
        .get("deployment/coredns")?;
    let node_program = node_program["spec"]["template"]["spec"]["volumes"]
        .as_array()
        .and_then(|volumes| volumes.iter().find(|volume| volume["name"] == "program"))
        .context("the name server's program")?
        .clone();
    let labels = json!({ "app": "register" });
    let config_map = |name: &str, data: Value| {
        let metadata = json!({ "name": name });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
    };
    Ok(vec![
        config_map("files", json!({ "stress.csv": STRESS })),
        config_map(
            "register",
            json!({ "ca.crt": authority.certificate_pem(), "departements.json": REGISTER }),
        ),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "register" },
            "type": "kubernetes.io/tls",
            "stringData": { "tls.crt": certificate.certificate_pem, "tls.key": certificate.key_pem },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "register" },
            "spec": { "selector": labels, "ports": [{ "port": 443, "targetPort": 8443 }] },
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "register", "labels": labels },
            "spec": {
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "register",
                    "image": "localhost/pause:1",
                    "command": ["/fileserver"],
                    "readinessProbe": { "tcpSocket": { "port": 8443 }, "periodSeconds": 1 },
                    "volumeMounts": [
                        { "name": "program", "mountPath": "/fileserver", "readOnly": true },
                        { "name": "files", "mountPath": "/files" },
                        { "name": "tls", "mountPath": "/tls" },
                    ],
                }],
                "volumes": [
                    node_program,
                    { "name": "files", "configMap": { "name": "register" } },
                    { "name": "tls", "secret": { "secretName": "register" } },
                ],
            },
        }),
    ])
}

/// Checks the two loads through the ingress; `key` is one of this installation's.
pub async fn reach_the_clients(documented: &Cluster, shell: &Shell, key: &str) -> Result<()> {
    documented.kubectl.apply_all(register(documented)?)?;
    documented.kubectl.run(&[
        "wait",
        "pod/register",
        "--for=condition=Ready",
        "--timeout=180s",
    ])?;
    let upgrade = "helm -n $NAMESPACE upgrade water-data charts/water-data --reuse-values --values <(echo \"$VALUES\")";
    let variables = [
        ("NAMESPACE", DOCUMENTED.to_owned()),
        ("VALUES", values().to_string()),
    ];
    shell.run(upgrade, &project(), &variables)?;

    await_levels(documented, key, A_LOAD, ["vigilance", "normal"]).await?;
    documented.kubectl.run(&[
        "create",
        "job",
        "today",
        "--from=cronjob/water-data-load-vigieau",
    ])?;
    documented.kubectl.run(&[
        "wait",
        "job/today",
        "--for=condition=Complete",
        "--timeout=180s",
    ])?;
    await_levels(documented, key, SOON, ["alerte", "alerte_renforcee"]).await
}

/// Waits until Hérault and Ille-et-Vilaine have these levels.
async fn await_levels(
    documented: &Cluster,
    key: &str,
    within: Duration,
    wanted: [&str; 2],
) -> Result<()> {
    let levels = async || {
        let stress = documented.water.get("/api/v1/stress", key).await?.json()?;
        let data = stress["data"]
            .as_array()
            .with_context(|| format!("no records: {stress}"))?;
        let levels: Vec<_> = data.iter().map(|record| &record["level"]).collect();
        ensure!(levels == wanted, "{stress}");
        Ok(())
    };
    documented
        .wait_until(&format!("the levels {wanted:?}"), within, levels)
        .await
}
