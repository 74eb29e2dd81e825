//! etcd, the API server, the controller manager and the scheduler.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::cluster::{NODE_ADDRESS, SERVICE_NETWORK, inside, program_inside};
use crate::supervisor::Service;
use crate::wait;

/// Returns the services that start before all others.
pub fn storage_and_api() -> Result<Vec<Service>> {
    write_audit_policy()?;
    Ok(vec![etcd(), api_server()])
}

/// Returns the services that start once the API server is ready. Earlier, the controller manager would end:
/// the roles that RBAC starts with would not be there yet.
pub fn controllers() -> Vec<Service> {
    vec![controller_manager(), scheduler()]
}

/// Waits, inside the cluster, until the API server has made its initial objects.
pub fn await_api() -> Result<()> {
    let kubeconfig = inside("pki/admin.kubeconfig");
    wait::until(Duration::from_secs(300), "the API server is ready", || {
        let answer = Command::new(program_inside("kubectl"))
            .args(["--kubeconfig", &kubeconfig, "get", "--raw=/readyz"])
            .stderr(Stdio::null())
            .output()
            .context("cannot start kubectl")?;
        Ok((answer.stdout == b"ok").then_some(()))
    })
}

fn pki(file: &str) -> String {
    inside(&format!("pki/{file}"))
}

fn etcd() -> Service {
    let arguments = [
        format!("--data-dir={}", inside("etcd")),
        // A development cluster does not outlive its machine.
        "--unsafe-no-fsync".into(),
        "--listen-client-urls=http://127.0.0.1:2379".into(),
        "--advertise-client-urls=http://127.0.0.1:2379".into(),
        "--listen-peer-urls=http://127.0.0.1:2380".into(),
        "--initial-advertise-peer-urls=http://127.0.0.1:2380".into(),
        "--initial-cluster=default=http://127.0.0.1:2380".into(),
    ];
    Service::new("etcd", program_inside("etcd"), arguments.into())
}

fn api_server() -> Service {
    let arguments = [
        "--etcd-servers=http://127.0.0.1:2379".into(),
        "--secure-port=6443".into(),
        "--bind-address=0.0.0.0".into(),
        format!("--advertise-address={NODE_ADDRESS}"),
        format!("--service-cluster-ip-range={SERVICE_NETWORK}"),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        format!("--kubelet-client-certificate={}", pki("kubelet-client.crt")),
        format!("--kubelet-client-key={}", pki("kubelet-client.key")),
        format!("--kubelet-certificate-authority={}", pki("ca.crt")),
        "--kubelet-preferred-address-types=InternalIP".into(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        format!("--service-account-key-file={}", pki("sa.pub")),
        format!("--service-account-signing-key-file={}", pki("sa.key")),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        "--allow-privileged=true".into(),
        format!("--requestheader-client-ca-file={}", pki("front-ca.crt")),
        "--requestheader-allowed-names=front-proxy-client".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        format!("--proxy-client-cert-file={}", pki("front-client.crt")),
        format!("--proxy-client-key-file={}", pki("front-client.key")),
        format!("--audit-policy-file={}", inside("audit.json")),
        format!("--audit-log-path={}", inside("logs/audit.log")),
    ];
    Service::new(
        "kube-apiserver",
        program_inside("kube-apiserver"),
        arguments.into(),
    )
}

fn controller_manager() -> Service {
    let mut arguments = with_kubeconfig("controller-manager");
    arguments.extend([
        "--use-service-account-credentials".into(),
        format!("--service-account-private-key-file={}", pki("sa.key")),
        format!("--root-ca-file={}", pki("ca.crt")),
        format!("--cluster-signing-cert-file={}", pki("ca.crt")),
        format!("--cluster-signing-key-file={}", pki("ca.key")),
    ]);
    Service::new(
        "kube-controller-manager",
        program_inside("kube-controller-manager"),
        arguments,
    )
}

fn scheduler() -> Service {
    Service::new(
        "kube-scheduler",
        program_inside("kube-scheduler"),
        with_kubeconfig("scheduler"),
    )
}

fn with_kubeconfig(name: &str) -> Vec<String> {
    let kubeconfig = pki(&format!("{name}.kubeconfig"));
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--leader-elect=false".into(),
        "--bind-address=127.0.0.1".into(),
        // With the default of 20 requests a second the controller manager alone takes 5 s to start.
        "--kube-api-qps=300".into(),
        "--kube-api-burst=600".into(),
    ]
}

/// Writes a policy that logs who did what, without bodies: tests ask this log whether a component wrote what
/// it need not.
fn write_audit_policy() -> Result<()> {
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    });
    fs::write(inside("audit.json"), policy.to_string()).context("cannot write the audit policy")
}
