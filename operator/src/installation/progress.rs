//! Progress of a step: pure predicates over a child as the API server reports it. They return what the rollout waits
//! for or fails with; nothing of a step that is done.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt;
use water_resources::water_data_api::ComponentStatus;

use crate::conditions::{Readiness, Reason};

pub fn migration(job: &Job) -> Option<Readiness> {
    let name = job.name_any();
    let status = job.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let conditions = conditions.into_iter().flatten();
    for condition in conditions.filter(|condition| condition.status == "True") {
        match condition.type_.as_str() {
            "Complete" => return None,
            "Failed" => {
                let reason = condition.reason.as_deref().unwrap_or("without a reason");
                let message = format!(
                    "the Job {name} failed ({reason}); look at its log and delete it to have it tried again"
                );
                return Some(Readiness::Stuck(Reason::MigrationFailed, message));
            }
            _ => {}
        }
    }
    let message = format!("the Job {name} runs");
    Some(Readiness::Underway(Reason::Migrating, message))
}

/// Progress of a Deployment; `None` once it is observed, every pod is of the latest template and available, and no old
/// pod is left.
pub fn deployment(deployment: &Deployment) -> Option<Readiness> {
    let underway = |message| Some(Readiness::Underway(Reason::RollingOut, message));
    let name = deployment.name_any();
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation < deployment.metadata.generation {
        return underway(format!(
            "the Deployment {name} was not seen by its controller yet"
        ));
    }
    let gave_up = status.conditions.iter().flatten().any(|condition| {
        condition.type_ == "Progressing"
            && condition.reason.as_deref() == Some("ProgressDeadlineExceeded")
    });
    if gave_up {
        let message = format!(
            "the Deployment {name} made no progress within spec.rollout.progressDeadlineSeconds: \
             look at its newest pods, and set a spec.image.tag that works"
        );
        return Some(Readiness::Stuck(Reason::RolloutFailed, message));
    }
    let desired = desired(deployment);
    let (updated, available) = (
        status.updated_replicas.unwrap_or(0),
        status.available_replicas.unwrap_or(0),
    );
    let total = status.replicas.unwrap_or(0);
    if updated == desired && available == desired && total == desired {
        return None;
    }
    underway(format!(
        "the Deployment {name} has {updated} of {desired} pods of the latest template, {available} available, \
         {total} in all"
    ))
}

/// Whether the controller of an Ingress gave it an address.
pub fn has_address(ingress: &Ingress) -> bool {
    let status = ingress.status.as_ref();
    let balancer = status.and_then(|status| status.load_balancer.as_ref());
    let addresses = balancer.and_then(|balancer| balancer.ingress.as_ref());
    addresses.is_some_and(|addresses| !addresses.is_empty())
}

/// A component as the status shows it.
pub fn component(name: &str, deployment: &Deployment) -> ComponentStatus {
    let status = deployment.status.clone().unwrap_or_default();
    let spec = deployment.spec.as_ref();
    let pod = spec.and_then(|spec| spec.template.spec.as_ref());
    let container = pod.and_then(|pod| pod.containers.first());
    let image = container.and_then(|container| container.image.clone());
    ComponentStatus {
        name: name.into(),
        desired: desired(deployment),
        ready: status.ready_replicas.unwrap_or(0),
        updated: status.updated_replicas.unwrap_or(0),
        image: image.unwrap_or_default(),
    }
}

fn desired(deployment: &Deployment) -> i32 {
    let spec = deployment.spec.as_ref();
    spec.and_then(|spec| spec.replicas).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judged(status: Value) -> Option<Readiness> {
        let object = json!({
            "metadata": { "name": "gate", "generation": 2 },
            "spec": { "replicas": 2, "selector": {}, "template": {} },
            "status": status,
        });
        deployment(&serde_json::from_value(object).unwrap())
    }

    fn rolled() -> Value {
        json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 })
    }

    #[test]
    fn a_rollout_is_complete_with_every_pod_new_and_no_old_one() {
        assert_eq!(judged(rolled()), None);
        for (field, value) in [
            ("observedGeneration", 1),
            ("replicas", 3),
            ("updatedReplicas", 1),
            ("availableReplicas", 1),
        ] {
            let mut status = rolled();
            status[field] = value.into();
            assert!(
                matches!(judged(status), Some(Readiness::Underway(..))),
                "{field}"
            );
        }
        assert!(matches!(judged(json!({})), Some(Readiness::Underway(..))));
    }

    #[test]
    fn a_rollout_without_progress_has_failed() {
        let mut status = rolled();
        status["availableReplicas"] = 1.into();
        let reason = "ProgressDeadlineExceeded";
        status["conditions"] =
            json!([{ "type": "Progressing", "status": "False", "reason": reason }]);
        assert!(matches!(judged(status), Some(Readiness::Stuck(..))));
    }

    #[test]
    fn a_migration_runs_completes_or_fails() {
        let judged = |conditions: Value| {
            let job = json!({ "metadata": { "name": "migrate" }, "status": { "conditions": conditions } });
            migration(&serde_json::from_value(job).unwrap())
        };
        let condition = |kind: &str| json!([{ "type": kind, "status": "True", "reason": "BackoffLimitExceeded" }]);
        let runs = Readiness::Underway(Reason::Migrating, "the Job migrate runs".into());
        assert_eq!(judged(json!([])), Some(runs.clone()));
        assert_eq!(judged(condition("Complete")), None);
        assert_eq!(judged(condition("FailureTarget")), Some(runs));
        let message = "the Job migrate failed (BackoffLimitExceeded); look at its log and delete it to have it tried again";
        let failed = Readiness::Stuck(Reason::MigrationFailed, message.into());
        assert_eq!(judged(condition("Failed")), Some(failed));
    }
}
