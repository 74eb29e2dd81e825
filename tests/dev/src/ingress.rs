//! What every cluster has beside the product: a name server (CoreDNS) and an ingress controller (Traefik).

use anyhow::{Context, Result};

use crate::cluster::{Cluster, program_inside};
use crate::process::{end_of_log, run, run_with_input};

/// Starts both and waits until they answer.
pub fn start(cluster: &Cluster) -> Result<()> {
    let coredns = include_str!("../manifests/coredns.yaml")
        .replace("@NODE_PROGRAM@", &program_inside("node"))
        .replace("@DNS_ADDRESS@", &cluster.dns_address());
    let traefik = include_str!("../manifests/traefik.yaml")
        .replace("@TRAEFIK_PROGRAM@", &program_inside("traefik"))
        .replace("@NODE_ADDRESS@", &cluster.node_address());
    run_with_input(
        cluster.kubectl().args(["apply", "--filename=-"]),
        &format!("{coredns}\n---\n{traefik}"),
    )?;
    for (namespace, deployment) in [
        ("kube-system", "deployment/coredns"),
        ("ingress", "deployment/traefik"),
    ] {
        let rollout = [
            "--namespace",
            namespace,
            "rollout",
            "status",
            deployment,
            "--timeout=120s",
        ];
        run(cluster.kubectl().args(rollout)).with_context(|| {
            format!(
                "{deployment} did not start; the end of the kubelet's log:\n{}",
                end_of_log(&cluster.log("kubelet"))
            )
        })?;
    }
    Ok(())
}
