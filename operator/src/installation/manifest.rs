//! A child of a WaterDataApi as it is applied: its kind, its name and its JSON.

use kube::api::{ApiResource, GroupVersionKind};
use serde_json::Value;

/// The kinds of children that are applied, watched, repaired and pruned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ChildKind {
    ServiceAccount,
    Service,
    NetworkPolicy,
    PodDisruptionBudget,
    Job,
    Deployment,
    Ingress,
}

impl ChildKind {
    pub const ALL: [Self; 7] = [
        Self::ServiceAccount,
        Self::Service,
        Self::NetworkPolicy,
        Self::PodDisruptionBudget,
        Self::Job,
        Self::Deployment,
        Self::Ingress,
    ];

    pub fn resource(self) -> ApiResource {
        let (group, kind, plural) = match self {
            Self::ServiceAccount => ("", "ServiceAccount", "serviceaccounts"),
            Self::Service => ("", "Service", "services"),
            Self::NetworkPolicy => ("networking.k8s.io", "NetworkPolicy", "networkpolicies"),
            Self::PodDisruptionBudget => ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
            Self::Job => ("batch", "Job", "jobs"),
            Self::Deployment => ("apps", "Deployment", "deployments"),
            Self::Ingress => ("networking.k8s.io", "Ingress", "ingresses"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Manifest {
    pub kind: ChildKind,
    pub name: String,
    pub body: Value,
}

/// Manifests of all children, by the steps in which they are applied.
#[derive(Clone, PartialEq, Debug)]
pub struct Desired {
    /// Manifests that are in force as soon as they are written: ServiceAccounts, Services, policies, budgets.
    pub groundwork: Vec<Manifest>,
    pub migration: Manifest,
    pub services: Vec<Manifest>,
    /// The gate, which needs the services.
    pub gate: Manifest,
    /// The way in, which needs the gate.
    pub exposure: Option<Manifest>,
    /// The portal, which nothing else needs.
    pub portal: Option<Manifest>,
}

impl Desired {
    /// Manifests of all children, in the order in which they are applied.
    pub fn all(&self) -> impl Iterator<Item = &Manifest> {
        let deployments = self.services.iter().chain([&self.gate]);
        self.groundwork
            .iter()
            .chain([&self.migration])
            .chain(deployments)
            .chain(&self.exposure)
            .chain(&self.portal)
    }
}
