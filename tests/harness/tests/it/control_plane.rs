//! A real API server judges schemas and rights, and remembers who did what.

use serde_json::json;
use water_harness::{ControlPlane, scratch_directory};

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
async fn a_service_account_has_its_own_rights_and_no_others() -> Result {
    let cluster = ControlPlane::shared().await?;
    cluster.apply(&reader_of_configmaps("rights"))?;
    let kubeconfig = scratch_directory("kubeconfig")?.join("reader");
    std::fs::write(&kubeconfig, cluster.kubeconfig_of("rights", "reader")?)?;
    let as_reader = format!("--kubeconfig={}", kubeconfig.display());
    cluster.kubectl(&[&as_reader, "-n", "rights", "get", "configmaps"])?;
    let refused = cluster
        .kubectl(&[&as_reader, "-n", "rights", "get", "secrets"])
        .unwrap_err();
    assert!(refused.to_string().contains("Forbidden"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn the_audit_log_tells_who_wrote_what() -> Result {
    let cluster = ControlPlane::shared().await?;
    cluster.kubectl(&["create", "namespace", "audited"])?;
    let events = cluster.audit_events()?;
    let written = events
        .iter()
        .find(|event| event["verb"] == "create" && event["objectRef"]["name"] == "audited");
    assert_eq!(written.unwrap()["user"]["username"], "admin");
    Ok(())
}

#[tokio::test]
async fn a_proxy_asks_as_the_administrator() -> Result {
    let cluster = ControlPlane::shared().await?;
    let proxy = cluster.proxy();
    let mut client = proxy.connect().await?;
    let answer = client
        .request("GET", "/api/v1/secrets?limit=1", &[])
        .await?;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()?["kind"], "SecretList");
    Ok(())
}

#[tokio::test]
async fn a_killed_api_server_comes_back_with_its_objects() -> Result {
    let cluster = ControlPlane::start().await?;
    cluster.kubectl(&["create", "namespace", "kept"])?;
    cluster.api_server().kill()?;
    assert!(cluster.kubectl(&["get", "namespace", "kept"]).is_err());
    cluster.api_server().start_again()?;
    cluster.ready().await?;
    assert_eq!(
        cluster.kubectl(&["get", "namespace", "kept", "-o=name"])?,
        "namespace/kept"
    );
    Ok(())
}
