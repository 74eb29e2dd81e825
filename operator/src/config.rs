//! The operator's settings.

use std::net::SocketAddr;
use std::str::FromStr;

use water_runtime::{Config, Invalid, Settings};

/// Settings of `water-operator run`.
#[derive(Clone, Debug)]
pub struct OperatorConfig {
    /// Address on which health and metrics are served.
    pub admin: SocketAddr,
    /// Name of this pod: the holder in the Lease, the reporter of events.
    pub pod_name: String,
    /// Namespace of the Lease, and of all that is watched with [`Scope::Namespaced`].
    pub pod_namespace: String,
    /// Scope of the watches.
    pub scope: Scope,
    /// Namespaces in addition to the pod's own in which WaterDataApis are rolled out, with [`Scope::Cluster`].
    pub more_namespaces: Vec<String>,
    /// Further namespaces in which ApiKeys get Secrets, with [`Scope::Cluster`]. Empty: in all.
    pub key_namespaces: Vec<String>,
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

    /// The namespaces in which ApiKeys get Secrets.
    pub fn secret_scope(&self) -> SecretScope {
        if self.scope == Scope::Cluster && self.key_namespaces.is_empty() {
            return SecretScope::Cluster;
        }
        let mut names = self.api_namespaces();
        if self.scope == Scope::Cluster {
            names.extend(self.key_namespaces.iter().cloned());
        }
        names.sort();
        names.dedup();
        SecretScope::Namespaces(names)
    }
}

/// Namespaces in which the operator reads and writes keys' Secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SecretScope {
    /// Every namespace.
    Cluster,
    /// Exactly these namespaces.
    Namespaces(Vec<String>),
}

/// Namespaces in which the operator watches ApiKeys and WaterDataApis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The operator's own namespace.
    Namespaced,
    /// Every namespace.
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
        let key_namespaces = settings.list(
            "WATER_KEY_NAMESPACES",
            "with Cluster, the only further namespaces in which ApiKeys get Secrets, separated by commas",
        );
        Ok(Self {
            admin: admin?,
            pod_name: pod_name?,
            pod_namespace: pod_namespace?,
            scope: scope?,
            more_namespaces: more_namespaces?,
            key_namespaces: key_namespaces?,
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
