//! Children of a WaterDataApi: a pure function of its spec, in a fixed order.

mod environment;
mod network;
mod pods;
mod workloads;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use water_resources::WaterDataApiSpec;
use water_resources::exposure::Switch;

use super::manifest::{ChildKind, Desired, Manifest};
pub use environment::GATE_GRACE;
pub use pods::{CONFIG_HASH, GATE_STORE};

/// The port names and numbers of every HTTP binary.
pub const HTTP_PORT: u16 = 8080;
/// Port of health, metrics and the operator's questions.
pub const ADMIN_PORT: u16 = 9090;

/// A WaterDataApi with what the operator knows about it beyond its spec.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub name: &'a str,
    pub namespace: &'a str,
    pub uid: &'a str,
    pub spec: &'a WaterDataApiSpec,
    pub secrets: &'a SecretFacts,
}

/// Facts about the Secrets that rendering needs: nothing of their content.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SecretFacts {
    pub postgres: Fingerprints,
    pub redis: Fingerprints,
    /// Name that distinguishes the gates' Redis from another one; `None` if it cannot be read.
    pub gate_store: Option<String>,
    pub identity: IdentityFacts,
    pub portal: PortalFacts,
}

/// Fingerprints of what the portal alone uses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortalFacts {
    /// Fingerprint of its secret at the identity provider.
    pub client_secret: String,
    /// Fingerprint of the certificate of the provider's authority.
    pub ca: String,
    /// Fingerprint of the key that seals what a browser keeps while it signs in.
    pub seal_key: String,
}

/// Fingerprints of the identity keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IdentityFacts {
    /// Fingerprint of the key that the gates and the portal sign with.
    pub signing: String,
    /// Fingerprint of the two that the services accept, whatever their order.
    pub accepted: String,
}

/// Fingerprints of a store's Secret: key → fingerprint of its value, the optional keys too.
pub type Fingerprints = BTreeMap<String, String>;

/// The parts of an installation that have pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Gate,
    Departements,
    History,
    Migrations,
    Portal,
}

impl Part {
    /// Parts of every installation.
    const ALWAYS: [Self; 4] = [
        Self::Gate,
        Self::Departements,
        Self::History,
        Self::Migrations,
    ];
    /// Parts with a Deployment and a Service, if they are declared.
    pub const SERVING: [Self; 4] = [Self::Gate, Self::Departements, Self::History, Self::Portal];

    /// The label `app.kubernetes.io/component`, and what the children's names end with.
    pub fn component(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Departements => "departements",
            Self::History => "history",
            Self::Migrations => "migrations",
            Self::Portal => "portal",
        }
    }

    /// The label `app.kubernetes.io/name`, and the image's name.
    pub fn program(self) -> &'static str {
        match self {
            Self::Gate => "water-gate",
            Self::Departements => "water-departements",
            Self::History => "water-history",
            Self::Migrations => "water-ingest",
            Self::Portal => "water-portal",
        }
    }
}

/// The label that `kubectl get -l` and the operator find the children by.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "water-operator");

pub fn render(source: Source<'_>) -> Desired {
    let portal = source.spec.portal.as_ref();
    let ingress = source.spec.exposure.ingress.as_ref();
    let declared = Part::ALWAYS.into_iter().chain(portal.map(|_| Part::Portal));
    let serving = declared.clone().filter(|part| *part != Part::Migrations);
    let mut groundwork = Vec::new();
    // The portal's ServiceAccount has rights, which the operator may not give: the chart makes it.
    groundwork.extend(Part::ALWAYS.map(|part| pods::service_account(source, part)));
    groundwork.extend(serving.clone().map(|part| network::service(source, part)));
    if source.spec.network_policy.mode == Switch::Enabled {
        groundwork.extend(declared.map(|part| network::policy(source, part)));
    }
    if source.spec.pod_disruption_budget == Switch::Enabled {
        groundwork.extend(serving.map(|part| workloads::disruption_budget(source, part)));
    }
    Desired {
        groundwork,
        migration: workloads::migration(source),
        services: vec![
            workloads::deployment(source, Part::Departements),
            workloads::deployment(source, Part::History),
        ],
        gate: workloads::deployment(source, Part::Gate),
        exposure: ingress.map(|ingress| network::ingress(source, ingress)),
        portal: portal.map(|_| workloads::deployment(source, Part::Portal)),
    }
}

impl<'a> Source<'a> {
    pub fn child(&self, part: Part) -> String {
        format!("{}-{}", self.name, part.component())
    }

    pub fn image(&self, part: Part) -> String {
        format!(
            "{}/{}:{}",
            self.spec.image.registry,
            part.program(),
            self.spec.image.tag
        )
    }

    /// The labels that never change: a Deployment's selector is immutable.
    fn selector(&self, part: Part) -> Value {
        json!({
            "app.kubernetes.io/name": part.program(),
            "app.kubernetes.io/instance": self.name,
            "app.kubernetes.io/component": part.component(),
        })
    }

    fn labels(&self, part: Part) -> Value {
        let mut labels = self.selector(part);
        labels["app.kubernetes.io/part-of"] = "water-data".into();
        labels[MANAGED_BY.0] = MANAGED_BY.1.into();
        labels["app.kubernetes.io/version"] = self.spec.image.tag.as_str().into();
        labels
    }

    /// A part's object of a kind that it has one of.
    fn manifest(&self, kind: ChildKind, part: Part, spec: Value) -> Manifest {
        self.named(kind, self.child(part), part, json!({ "spec": spec }))
    }

    /// An object of this WaterDataApi; `rest` is all but kind and metadata.
    fn named(&self, kind: ChildKind, name: String, part: Part, rest: Value) -> Manifest {
        let resource = kind.resource();
        let mut body = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": self.labels(part),
                "ownerReferences": [{
                    "apiVersion": "waterdata.dev/v1",
                    "kind": "WaterDataApi",
                    "name": self.name,
                    "uid": self.uid,
                    "controller": true,
                }],
            },
        });
        if let (Value::Object(body), Value::Object(rest)) = (&mut body, rest) {
            body.extend(rest);
        }
        Manifest { kind, name, body }
    }
}

#[cfg(test)]
mod tests;
