//! A real API server judges rights, and remembers who did what.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use water_harness::{ControlPlane, scratch_directory, wait_until};

/// Milliseconds, unless the machine is busy.
const SOON: Duration = Duration::from_secs(60);

type Result = anyhow::Result<()>;

fn reader_of_configmaps(namespace: &str) -> String {
    let named = json!({ "name": "reader", "namespace": namespace });
    let group = "rbac.authorization.k8s.io";
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace }
    });
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": named });
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": named,
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }]
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": named,
        "roleRef": { "apiGroup": group, "kind": "Role", "name": "reader" },
        "subjects": [{ "kind": "ServiceAccount", "name": "reader", "namespace": named["namespace"] }]
    });
    let items = [namespace, account, role, binding];
    json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()
}

#[tokio::test]
async fn a_service_account_has_its_own_rights_and_the_audit_log_names_it() -> Result {
    let cluster = ControlPlane::shared().await?;
    cluster.apply(&reader_of_configmaps("rights"))?;
    let kubeconfig = scratch_directory("kubeconfig")?.join("reader");
    std::fs::write(&kubeconfig, cluster.kubeconfig_of("rights", "reader")?)?;
    let as_reader = format!("--kubeconfig={}", kubeconfig.display());
    let get = |what| cluster.kubectl(&[&as_reader, "-n", "rights", "get", what]);
    // The authorizer and the log learn of it a moment later.
    let granted = async || get("configmaps");
    wait_until("the rights", SOON, granted).await?;
    let refused = get("secrets").unwrap_err().to_string();
    assert!(refused.contains("Forbidden"), "{refused}");
    let mut events = cluster.audit_events_of("system:serviceaccount:rights:reader");
    wait_until("both requests in the log", SOON, async || {
        let lists = events.all()?.iter().filter(|event| event["verb"] == "list");
        let read = lists.map(|event| &event["objectRef"]["resource"]);
        let mut read: Vec<_> = read.collect();
        // Until it was granted, it may have been asked for several times.
        read.dedup();
        ensure!(read == ["configmaps", "secrets"], "{read:?}");
        Ok(())
    })
    .await
}
