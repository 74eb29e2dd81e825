//! Deployments of the serving parts, and how many of their pods a drain may take.

use serde_json::json;
use water_resources::portal::Portal;

use super::super::manifest::{ChildKind, Manifest};
use super::{Part, Source, pods};

pub fn deployment(source: Source<'_>, part: Part) -> Manifest {
    let rollout = &source.spec.rollout;
    let spec = json!({
        "replicas": replicas(source, part),
        "selector": { "matchLabels": source.selector(part) },
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": { "maxSurge": rollout.max_surge, "maxUnavailable": rollout.max_unavailable },
        },
        "minReadySeconds": rollout.min_ready_seconds,
        "progressDeadlineSeconds": rollout.progress_deadline_seconds,
        "revisionHistoryLimit": 3,
        "template": pods::template(source, part),
    });
    source.manifest(ChildKind::Deployment, part, spec)
}

/// One pod at a time, so that a drain takes a part down never and is blocked never, not even by a
/// single replica.
pub fn disruption_budget(source: Source<'_>, part: Part) -> Manifest {
    let spec = json!({ "maxUnavailable": 1, "selector": { "matchLabels": source.selector(part) } });
    source.manifest(ChildKind::PodDisruptionBudget, part, spec)
}

fn replicas(source: Source<'_>, part: Part) -> i32 {
    let components = &source.spec.components;
    match part {
        Part::Gate | Part::Migrations => components.gate.replicas(),
        Part::Departements => components.departements.replicas(),
        Part::History => components.history.replicas(),
        Part::Portal => source.spec.portal.as_ref().map_or(0, Portal::replicas),
    }
}
