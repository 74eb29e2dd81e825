//! Files into the product, as its users bring them: a Job of the ingest image
//! with the writer's rights.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::Cluster;

const PATIENCE: Duration = Duration::from_secs(120);

impl Cluster {
    /// Runs `water-ingest` with these arguments in the cluster; `/data/<file>` has the `content`. Returns its
    /// output, or fails with it.
    pub async fn ingest(&self, arguments: &[&str], file: &str, content: &str) -> Result<String> {
        let name = format!("ingest-{}", file.replace('.', "-"));
        let (job, map) = (format!("job/{name}"), format!("configmap/{name}"));
        self.kubectl
            .run(&["delete", &job, &map, "--ignore-not-found", "--wait"])?;
        let api = self.api()?;
        let image = format!(
            "{}/water-ingest:{}",
            api["spec"]["image"]["registry"]
                .as_str()
                .context("no registry")?,
            api["spec"]["image"]["tag"].as_str().context("no tag")?
        );
        let secret = api["spec"]["postgres"]["secretRef"]["name"].clone();
        let file = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { file: content },
        });
        self.kubectl
            .apply_all(vec![file, manifest(&name, &image, &secret, arguments)])?;
        self.ended(&name).await
    }

    async fn ended(&self, name: &str) -> Result<String> {
        let job = format!("job/{name}");
        let succeeded = self
            .wait_until(&format!("the end of {job}"), PATIENCE, async || {
                let status = &self.kubectl.get(&job)?["status"];
                match (status["succeeded"].as_u64(), status["failed"].as_u64()) {
                    (Some(_), _) => Ok(true),
                    (_, Some(_)) => Ok(false),
                    _ => bail!("{status}"),
                }
            })
            .await?;
        let printed = self.kubectl.run(&["logs", &job])?;
        if !succeeded {
            bail!("{printed}");
        }
        Ok(printed)
    }
}

/// Returns the Job's manifest, as restricted as the namespace demands.
fn manifest(name: &str, image: &str, secret: &Value, arguments: &[&str]) -> Value {
    let container = json!({
        "name": "ingest",
        "image": image,
        "args": arguments,
        "env": [{
            "name": "WATER_POSTGRES_URL",
            "valueFrom": { "secretKeyRef": { "name": secret, "key": "writer-url" } },
        }],
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
        "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
    });
    let pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "containers": [container],
        "volumes": [{ "name": "data", "configMap": { "name": name } }],
    });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name },
        // A refused file is refused again: nothing is gained by another try.
        "spec": { "backoffLimit": 0, "template": { "spec": pod } },
    })
}
