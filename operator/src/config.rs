//! The operator's settings.

use std::net::SocketAddr;
use std::str::FromStr;

use water_runtime::{Config, Invalid, Settings};

/// What `water-operator run` needs to know.
#[derive(Clone, Debug)]
pub struct OperatorConfig {
    /// Where health and metrics are answered.
    pub admin: SocketAddr,
    /// This pod's name: the holder in the Lease, the reporter of events.
    pub pod_name: String,
    /// Where the Lease is, and all that is watched with [`Scope::Namespaced`].
    pub pod_namespace: String,
    /// What is watched.
    pub scope: Scope,
    /// With [`Scope::Cluster`]: namespaces beside the pod's own in which WaterDataApis are rolled out.
    pub more_namespaces: Vec<String>,
}

impl OperatorConfig {
    /// The namespaces in which the operator may read the stores' Secrets and write workloads.
    pub fn api_namespaces(&self) -> Vec<String> {
        let more = match self.scope {
            Scope::Namespaced => &[][..],
            Scope::Cluster => &self.more_namespaces,
        };
        let more = more.iter().filter(|name| **name != self.pod_namespace);
        [&self.pod_namespace]
            .into_iter()
            .chain(more)
            .cloned()
            .collect()
    }
}

/// Where the operator looks for ApiKeys and WaterDataApis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// In its own namespace.
    Namespaced,
    /// In all.
    Cluster,
}

impl FromStr for Scope {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "Namespaced" => Ok(Self::Namespaced),
            "Cluster" => Ok(Self::Cluster),
            _ => Err("it is neither Namespaced nor Cluster"),
        }
    }
}

impl Config for OperatorConfig {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let admin = settings.or(
            "WATER_ADMIN_ADDRESS",
            "0.0.0.0:9090",
            "the address and port of /live, /ready and /metrics, such as 0.0.0.0:9090",
        );
        let pod_name = settings.required("WATER_POD_NAME", "the pod's name, from the downward API");
        let pod_namespace = settings.required(
            "WATER_POD_NAMESPACE",
            "the pod's namespace, from the downward API",
        );
        let scope = settings.or(
            "WATER_SCOPE",
            "Namespaced",
            "Namespaced, to act in the pod's namespace, or Cluster, to act in all",
        );
        let more_namespaces = settings.list(
            "WATER_API_NAMESPACES",
            "with Cluster, more namespaces that hold WaterDataApis, separated by commas",
        );
        Ok(Self {
            admin: admin?,
            pod_name: pod_name?,
            pod_namespace: pod_namespace?,
            scope: scope?,
            more_namespaces: more_namespaces?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_named_all_at_once() {
        let mut settings =
            Settings::from_pairs([("WATER_POD_NAME", "a"), ("WATER_SCOPE", "World")]);
        assert!(OperatorConfig::read(&mut settings).is_err());
        assert_eq!(
            settings.problems(),
            [
                "WATER_POD_NAMESPACE is not set. Set it to the pod's namespace, from the downward API.",
                "WATER_SCOPE is not usable: it is neither Namespaced nor Cluster. \
                 Set it to Namespaced, to act in the pod's namespace, or Cluster, to act in all.",
            ]
        );
    }
}
