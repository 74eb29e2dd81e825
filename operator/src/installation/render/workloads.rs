//! Deployments of the serving parts, how many of their pods a drain may take, and the migration Job.

use serde_json::json;
use water_resources::portal::Portal;

use super::super::fingerprint::short_hash;
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

/// Budget of one pod at a time, so that a drain takes a part down never and is blocked never, not even by a single
/// replica.
pub fn disruption_budget(source: Source<'_>, part: Part) -> Manifest {
    let spec = json!({ "maxUnavailable": 1, "selector": { "matchLabels": source.selector(part) } });
    source.manifest(ChildKind::PodDisruptionBudget, part, spec)
}

/// The migration Job. A Job's pods cannot be changed, so its name carries a hash of what it does:
/// another version or another database is another Job.
pub fn migration(source: Source<'_>) -> Manifest {
    let migrations = &source.spec.components.migrations;
    let spec = json!({
        "backoffLimit": migrations.backoff_limit,
        "activeDeadlineSeconds": migrations.active_deadline_seconds,
        "template": pods::template(source, Part::Migrations),
    });
    let name = format!(
        "{}-migrate-{}",
        source.name,
        short_hash(&[&spec.to_string()])
    );
    let spec = json!({ "spec": spec });
    source.named(ChildKind::Job, name, Part::Migrations, spec)
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
