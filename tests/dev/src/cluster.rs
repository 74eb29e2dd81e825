//! One numbered cluster: what its number decides (addresses, names) and where its files are.
//!
//! The cluster's processes see its folder under a fixed path, [`Cluster::FILES`], whatever it is
//! called on the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A development cluster, running or not.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// 1 to [`Cluster::MOST`]: part of every address and name, so that clusters cannot collide.
    pub number: u8,
    /// The cluster's files on the machine.
    pub folder: PathBuf,
}

impl Cluster {
    /// Host name of the product: one of those that are set aside for examples.
    pub const HOST: &str = "water.example";
    /// The highest number: one byte of an IPv4 address, without its last value.
    pub const MOST: u8 = 254;
    /// What the names of a cluster's link and control group begin with, before its number.
    pub const NAME: &str = "water-data";
    /// Where the cluster's processes see [`Cluster::folder`].
    pub const FILES: &str = "/run/water-data";

    /// The node's address, at which everything in the cluster is reached from the machine.
    pub fn node_address(&self) -> String {
        format!("10.199.{}.2", self.number)
    }

    /// The machine's end of the link to the node.
    pub fn host_address(&self) -> String {
        format!("10.199.{}.1", self.number)
    }

    /// The pods' addresses (CIDR).
    pub fn pod_network(&self) -> String {
        format!("10.244.{}.0/24", self.number)
    }

    /// The Services' addresses (CIDR): a network of its own for each cluster, so that each can have
    /// its route.
    pub fn service_network(&self) -> String {
        format!("10.96.{}.0/24", self.number)
    }

    /// The API server's address as a Service: the first one of the network, which Kubernetes takes by itself.
    pub fn kubernetes_address(&self) -> String {
        format!("10.96.{}.1", self.number)
    }

    /// The cluster's name server.
    pub fn dns_address(&self) -> String {
        format!("10.96.{}.10", self.number)
    }

    /// The node's name, and its host name inside.
    pub fn node_name(&self) -> String {
        format!("node{}", self.number)
    }

    /// The machine's network link to the node.
    pub fn link(&self) -> String {
        format!("{}{}", Self::NAME, self.number)
    }

    /// The control group, in each hierarchy, below which all pods are.
    pub fn cgroup(&self) -> String {
        format!("{}{}", Self::NAME, self.number)
    }

    /// The URL of the API server.
    pub fn api_server(&self) -> String {
        format!("https://{}:6443", self.node_address())
    }

    /// Host and port of the image registry.
    pub fn registry(&self) -> String {
        format!("{}:5000", self.node_address())
    }

    /// A file of the cluster as the machine sees it.
    pub fn file(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// The log of one of the cluster's programs.
    pub fn log(&self, program: &str) -> PathBuf {
        self.folder.join("logs").join(program).with_extension("log")
    }

    /// The kubeconfig of the cluster's administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.file("pki/admin.kubeconfig")
    }

    /// `kubectl` as the cluster's administrator.
    pub fn kubectl(&self) -> Command {
        let mut kubectl = Command::new(self.file("programs/kubectl"));
        kubectl.env("KUBECONFIG", self.kubeconfig());
        kubectl
    }

    /// `helm` as the cluster's administrator.
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

/// A file of the cluster as its own processes see it.
pub fn inside(path: &str) -> String {
    Path::new(Cluster::FILES).join(path).display().to_string()
}

/// One of the cluster's programs as its own processes see it.
pub fn program_inside(name: &str) -> String {
    inside(&format!("programs/{name}"))
}
