//! Rights that Kubernetes' own roles `view` and `edit` give people in ApiKeys, after the cluster has aggregated
//! the chart's.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use water_e2e::Cluster;

const SOON: Duration = Duration::from_secs(60);

/// Asks whether `person` may do this in the product's namespace.
fn may(cluster: &Cluster, person: &str, question: &[&str]) -> Result<bool> {
    let person = format!("--as={person}");
    let mut asked = cluster.kubectl.command();
    asked.args(["auth", "can-i", &person]).args(question);
    let answer = String::from_utf8(asked.output()?.stdout)?;
    ensure!(["yes", "no"].contains(&answer.trim()), "{answer}");
    Ok(answer.trim() == "yes")
}

/// Makes somebody whom the namespace gives a role of the cluster.
async fn person(cluster: &Cluster, role: &str) -> Result<String> {
    let name = format!("somebody-who-may-{role}");
    cluster.kubectl.apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name }],
    }))?;
    let is_bound = async || {
        ensure!(may(cluster, &name, &["list", "apikeys"])?);
        Ok(())
    };
    cluster.wait_until("the role", SOON, is_bound).await?;
    Ok(name)
}

#[tokio::test]
async fn a_viewer_sees_apikeys_and_no_secret_and_an_editor_edits_all_but_a_status() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (viewer, editor) = (
        person(&cluster, "view").await?,
        person(&cluster, "edit").await?,
    );
    for resource in ["apikeys", "waterdataapis"] {
        for verb in ["get", "list", "watch"] {
            ensure!(
                may(&cluster, &viewer, &[verb, resource])?,
                "{verb} {resource}"
            );
        }
        for verb in ["create", "update", "patch", "delete"] {
            ensure!(
                !may(&cluster, &viewer, &[verb, resource])?,
                "{verb} {resource}"
            );
            ensure!(
                may(&cluster, &editor, &[verb, resource])?,
                "{verb} {resource}"
            );
        }
        for person in [&viewer, &editor] {
            let status = ["patch", resource, "--subresource=status"];
            ensure!(!may(&cluster, person, &status)?, "{person} {resource}");
        }
    }
    for verb in ["get", "list", "watch"] {
        ensure!(
            !may(&cluster, &viewer, &[verb, "secrets"])?,
            "{verb} secrets"
        );
    }
    for person in [viewer, editor] {
        cluster.kubectl.run(&["delete", "rolebinding", &person])?;
    }
    Ok(())
}
