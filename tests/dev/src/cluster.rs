//! The development cluster: its addresses and names, of which a machine has one set, and the places
//! of its files.
//!
//! The cluster's processes see its folder under a fixed path, [`FILES`], whatever it is called on
//! the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process::run_with_input;

/// Host name of the product: one of those that are set aside for examples.
pub const HOST: &str = "water.example";
/// Name of the cluster's link and control group.
pub const NAME: &str = "water-data";
/// The node's name, and its host name inside.
pub const NODE: &str = "node";
/// The node's address, at which everything in the cluster is reached from the machine.
pub const NODE_ADDRESS: &str = "10.199.0.2";
/// The machine's end of the link to the node.
pub const HOST_ADDRESS: &str = "10.199.0.1";
/// The pods' addresses (CIDR).
pub const POD_NETWORK: &str = "10.244.0.0/24";
/// The Services' addresses (CIDR).
pub const SERVICE_NETWORK: &str = "10.96.0.0/24";
/// The API server's address as a Service: the first one of the network, which Kubernetes takes by itself.
pub const KUBERNETES_ADDRESS: &str = "10.96.0.1";
/// The cluster's name server.
pub const DNS_ADDRESS: &str = "10.96.0.10";
/// Host and port of the image registry.
pub const REGISTRY: &str = "10.199.0.2:5000";
/// URL of the API server.
pub const API_SERVER: &str = "https://10.199.0.2:6443";
/// Path under which the cluster's processes see [`Cluster::folder`].
pub const FILES: &str = "/run/water-data";

/// A cluster, running or not.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The cluster's files on the machine.
    pub folder: PathBuf,
}

impl Cluster {
    /// Returns a file of the cluster as the machine sees it.
    pub fn file(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Returns the log of one of the cluster's programs.
    pub fn log(&self, program: &str) -> PathBuf {
        self.folder.join("logs").join(program).with_extension("log")
    }

    /// Returns the kubeconfig of the cluster's administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.file("pki/admin.kubeconfig")
    }

    /// Returns `kubectl` as the cluster's administrator.
    pub fn kubectl(&self) -> Command {
        let mut kubectl = Command::new(self.file("programs/kubectl"));
        kubectl.env("KUBECONFIG", self.kubeconfig());
        kubectl
    }

    /// Applies manifests, on the server's side, so that no annotation repeats what a Secret holds.
    pub fn apply(&self, manifests: &str) -> Result<()> {
        let apply = "apply --server-side --force-conflicts --field-manager=water-dev --filename=-";
        run_with_input(self.kubectl().args(apply.split(' ')), manifests).map(drop)
    }

    /// Returns `helm` as the cluster's administrator.
    pub fn helm(&self) -> Command {
        let mut helm = Command::new(self.file("programs/helm"));
        helm.env("KUBECONFIG", self.kubeconfig());
        // Helm's own caches and settings would otherwise be made in the home folder.
        for (variable, folder) in [
            ("HELM_CACHE_HOME", "helm/cache"),
            ("HELM_CONFIG_HOME", "helm/config"),
            ("HELM_DATA_HOME", "helm/data"),
        ] {
            helm.env(variable, self.file(folder));
        }
        helm
    }
}

/// Returns a file of the cluster as its own processes see it.
pub fn inside(path: &str) -> String {
    Path::new(FILES).join(path).display().to_string()
}

/// Returns one of the cluster's programs as its own processes see it.
pub fn program_inside(name: &str) -> String {
    inside(&format!("programs/{name}"))
}
