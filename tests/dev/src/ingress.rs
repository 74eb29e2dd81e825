//! Parts of every cluster besides the product: a name server (CoreDNS) and an ingress controller (Traefik),
//! which serves every host by http, and by https with a certificate of the cluster's authority.

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::certificates::INGRESS;
use crate::cluster::{Cluster, DNS_ADDRESS, NODE_ADDRESS, program_inside};
use crate::process::{end_of_log, run};

/// Starts both and waits until they answer.
pub fn start(cluster: &Cluster) -> Result<()> {
    let coredns = include_str!("../manifests/coredns.yaml")
        .replace("@NODE_PROGRAM@", &program_inside("node"))
        .replace("@DNS_ADDRESS@", DNS_ADDRESS);
    let traefik = include_str!("../manifests/traefik.yaml")
        .replace("@TRAEFIK_PROGRAM@", &program_inside("traefik"))
        .replace("@NODE_ADDRESS@", NODE_ADDRESS);
    let certificate = certificate(cluster)?;
    cluster.apply(&format!("{coredns}\n---\n{traefik}\n---\n{certificate}"))?;
    for (namespace, deployment) in [
        ("kube-system", "deployment/coredns"),
        ("ingress", "deployment/traefik"),
    ] {
        let rollout = ["rollout", "status", deployment, "--timeout=120s"];
        let namespace = ["--namespace", namespace];
        run(cluster.kubectl().args(namespace).args(rollout)).with_context(|| {
            format!(
                "{deployment} did not start; the end of the kubelet's log:\n{}",
                end_of_log(&cluster.log("kubelet"))
            )
        })?;
    }
    Ok(())
}

/// Returns the Secret with the certificate, and with the file by which Traefik shows it for every host.
fn certificate(cluster: &Cluster) -> Result<Value> {
    let file = cluster.file("pki").join(INGRESS);
    let read = |extension: &str| {
        let file = file.with_extension(extension);
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    };
    let shown = json!({"certFile": "/certificate/tls.crt", "keyFile": "/certificate/tls.key"});
    let settings = json!({"tls": {"stores": {"default": {"defaultCertificate": shown}}}});
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "certificate", "namespace": "ingress"},
        "stringData": {
            "settings.yaml": settings.to_string(),
            "tls.crt": read("crt")?,
            "tls.key": read("key")?,
        },
    }))
}
