//! Services that make the namespaces a Kubernetes node: registry, containerd, kubelet, kube-proxy and the
//! policy engine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use nix::sys::statfs::{OVERLAYFS_SUPER_MAGIC, statfs};
use serde_json::json;

use crate::cluster::{
    DNS_ADDRESS, FILES, NAME, NODE, NODE_ADDRESS, POD_NETWORK, REGISTRY, inside, program_inside,
};
use crate::process::run;
use crate::supervisor::Service;

/// Returns the services that start together with the API server, which they do not need.
pub fn images() -> Result<Vec<Service>> {
    write("containerd.toml", &containerd_config()?)?;
    write("cni/10-pods.conflist", &pod_network().to_string())?;
    write("certs.d/_default/hosts.toml", &registry_hosts())?;
    fs::create_dir_all(inside("registry")).context("cannot make the registry's folder")?;
    let registry = [
        "registry".into(),
        "serve".into(),
        format!("--address={REGISTRY}"),
        format!("--disk={}", inside("registry")),
    ];
    Ok(vec![
        Service::new("registry", program_inside("crane"), registry.into()),
        Service::new(
            "containerd",
            "containerd".into(),
            vec![format!("--config={}", inside("containerd.toml"))],
        ),
    ])
}

/// Returns the services that start once the API server is ready.
pub fn agents() -> Result<Vec<Service>> {
    write("kubelet.json", &kubelet_config().to_string())?;
    write("kube-proxy.json", &proxy_config().to_string())?;
    if !kernel_queues_by_nftables() {
        queue_by_iptables()?;
    }
    let kubelet = [
        format!("--config={}", inside("kubelet.json")),
        format!("--kubeconfig={}", inside("pki/kubelet.kubeconfig")),
        format!("--hostname-override={NODE}"),
        format!("--node-ip={NODE_ADDRESS}"),
        "--root-dir=/var/lib/kubelet".into(),
    ];
    let policies = [
        format!("--kubeconfig={}", inside("pki/admin.kubeconfig")),
        format!("--hostname-override={NODE}"),
        "--disable-nri".into(),
        format!("--nfqueue-id={QUEUE}"),
        "--metrics-bind-address=127.0.0.1:9080".into(),
        // A workaround for kernels before 6.12 that this engine's queue does not need.
        "--netfilter-bug-1766-fix=false".into(),
    ];
    Ok(vec![
        Service::new("kubelet", program_inside("kubelet"), kubelet.into()),
        Service::new(
            "kube-proxy",
            program_inside("kube-proxy"),
            vec![format!("--config={}", inside("kube-proxy.json"))],
        ),
        Service::new("netpol", program_inside("netpol"), policies.into()),
    ])
}

fn containerd_config() -> Result<String> {
    let root = statfs(FILES).with_context(|| format!("cannot examine {FILES}"))?;
    // An overlay cannot lie on an overlay, which is what a container's file system is.
    let snapshotter = if root.filesystem_type() == OVERLAYFS_SUPER_MAGIC {
        "native"
    } else {
        "overlayfs"
    };
    Ok(format!(
        r#"version = 2
root = "{root}"
state = "/run/containerd-state"
oom_score = 0
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE the pause container's oom_score_adj cannot be lowered, and no pod would start.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{hosts}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "runc"
        SystemdCgroup = false
"#,
        root = inside("containerd"),
        hosts = inside("certs.d"),
        cni = inside("cni"),
    ))
}

/// Returns a rule by which image names of any registry resolve to the cluster's own: nothing is pulled from
/// elsewhere.
fn registry_hosts() -> String {
    format!(
        "server = \"http://{REGISTRY}\"\n[host.\"http://{REGISTRY}\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
    )
}

/// Returns a network with a separate link for each pod (no bridge): all packets between pods are routed,
/// which the policy engine needs.
fn pod_network() -> serde_json::Value {
    let addresses = json!({
        "type": "host-local",
        "dataDir": "/run/cni-addresses",
        "ranges": [[{"subnet": POD_NETWORK}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    });
    json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [
        {"type": "ptp", "ipMasq": false, "ipam": addresses},
        // Gives the ingress controller its hostPort.
        {"type": "portmap", "capabilities": {"portMappings": true}},
    ]})
}

fn kubelet_config() -> serde_json::Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        // By default this version refuses machines with control groups of version 1.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{NAME}"),
        "failSwapOn": false,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "tlsCertFile": inside("pki/kubelet.crt"),
        "tlsPrivateKeyFile": inside("pki/kubelet.key"),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": inside("pki/ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "enforceNodeAllocatable": [],
        // `kubectl logs` shows one file: a pod's whole log is in it, for tests search all that was said.
        "containerLogMaxSize": "1Gi",
        // A full disk of the machine is no reason to drop images.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "200Mi",
            "imagefs.available": "200Mi",
            "nodefs.inodesFree": "1%",
        },
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "makeIPTablesUtilChains": false,
        // Lowering it needs CAP_SYS_RESOURCE, which a container may not have.
        "oomScoreAdj": 0,
    })
}

fn proxy_config() -> serde_json::Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": inside("pki/proxy.kubeconfig")},
        "hostnameOverride": NODE,
        "oomScoreAdj": 0,
        "clusterCIDR": POD_NETWORK,
        "nftables": {"minSyncPeriod": "100ms"},
        // The machine's connection tracking is not this cluster's to tune.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    })
}

/// The netfilter queue on which the policy engine judges the first packet of each connection.
const QUEUE: &str = "100";

/// Checks whether the kernel can queue by nftables, with which the engine writes its rules: some kernels are
/// built without its queue statement.
fn kernel_queues_by_nftables() -> bool {
    let probe = format!(
        "add table inet probe; add chain inet probe c; add rule inet probe c queue num {QUEUE} bypass; \
         delete table inet probe"
    );
    Command::new("nft")
        .arg(probe)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Adds the engine's rules in the words of iptables: it judges the first packet of a connection. (It would
/// know later ones by a label that it sets on the connection, which such a kernel does not let it.) The
/// node's own packets, which are root's, pass: the kubelet's probes.
fn queue_by_iptables() -> Result<()> {
    let to_queue = format!("-j NFQUEUE --queue-num {QUEUE} --queue-bypass");
    let rules = [
        "-N POLICIES".into(),
        "-N POLICIES-IN".into(),
        "-A POSTROUTING -j POLICIES".into(),
        "-A POLICIES -m owner --uid-owner 0 -j RETURN".into(),
        "-A POLICIES -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN".into(),
        format!("-A POLICIES -s {POD_NETWORK} {to_queue}"),
        format!("-A POLICIES -d {POD_NETWORK} {to_queue}"),
        "-A INPUT -j POLICIES-IN".into(),
        "-A POLICIES-IN -i lo -j RETURN".into(),
        format!("-A POLICIES-IN -s {POD_NETWORK} -m conntrack --ctstate NEW {to_queue}"),
    ];
    for rule in rules {
        run(Command::new("iptables")
            .args(["-w", "-t", "mangle"])
            .args(rule.split(' ')))?;
    }
    Ok(())
}

fn write(file: &str, text: &str) -> Result<()> {
    let path = inside(file);
    if let Some(folder) = Path::new(&path).parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(&path, text).with_context(|| format!("cannot write {path}"))
}
