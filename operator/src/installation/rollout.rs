//! The steps of a rollout, in their order, each waiting for the one before.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use water_resources::WaterDataApi;

use super::children::{ChildError, Children};
use super::manifest::{ChildKind, Desired, Manifest};
use super::progress;
use super::report::waiting;
use crate::conditions::{ConditionType, Finding, Readiness, Reason, holds};

pub struct Rollout {
    pub migrations: Finding,
    pub outcome: Readiness,
}

impl Rollout {
    /// Outcome of a pass that touched nothing: what is known of the migrations stays.
    pub fn untouched(api: &WaterDataApi, outcome: Readiness) -> Self {
        let status = api.status.as_ref();
        let is_known = status
            .is_some_and(|status| holds(&status.conditions, ConditionType::MigrationsComplete));
        let migrations = if is_known {
            migrated()
        } else {
            waiting(ConditionType::MigrationsComplete)
        };
        Self {
            migrations,
            outcome,
        }
    }

    pub fn is_complete(&self) -> bool {
        matches!(self.outcome, Readiness::InForce(Reason::Complete, _))
    }

    fn past_migrations(outcome: Readiness) -> Self {
        Self {
            migrations: migrated(),
            outcome,
        }
    }
}

/// Groundwork → migration → services → gate → exposure → portal → prune. Each step waits for the one before.
///
/// Gates load whatever is in Redis. Until the key directory is claimed for this WaterDataApi that may be what an
/// earlier one or another installation left, with keys that were revoked since: gates that run go on, and none is made
/// or changed. A problem of the portal leaves its Deployment as it is.
pub async fn run(
    children: &mut Children,
    desired: &Desired,
    is_claimed: bool,
    portal: Result<(), String>,
) -> Result<Rollout, ChildError> {
    for manifest in desired.all() {
        children.repair(manifest).await?;
    }
    for manifest in &desired.groundwork {
        children.apply(manifest).await?;
    }
    if let Some(unfinished) = migrate(children, desired).await? {
        return Ok(unfinished);
    }
    if let Some(unfinished) = deploy(children, desired, is_claimed).await? {
        return Ok(unfinished);
    }
    if let Some(exposure) = &desired.exposure {
        children.apply(exposure).await?;
    }
    if let Some(manifest) = &desired.portal {
        if let Err(hindrance) = portal {
            return Ok(Rollout::past_migrations(Readiness::Stuck(
                Reason::PortalInvalid,
                hindrance,
            )));
        }
        children.apply(manifest).await?;
        if let Some(unfinished) = unfinished(children, manifest)? {
            return Ok(unfinished);
        }
    }
    children.prune(desired).await?;
    let outcome = Readiness::InForce(Reason::Complete, "everything is as declared".into());
    Ok(Rollout::past_migrations(outcome))
}

/// Applies the migration Job; answers how far it is, unless it is done.
async fn migrate(
    children: &mut Children,
    desired: &Desired,
) -> Result<Option<Rollout>, ChildError> {
    children.apply(&desired.migration).await?;
    let job: Option<Job> = children.get(ChildKind::Job, &desired.migration.name)?;
    let outcome = progress::migration(&job.unwrap_or_default());
    Ok(outcome.map(|outcome| Rollout {
        migrations: Finding::lacks(
            ConditionType::MigrationsComplete,
            outcome.reason(),
            outcome.message(),
        ),
        outcome,
    }))
}

/// Applies the Deployments of the services and then the gate's; answers how far they are, unless
/// they are done.
async fn deploy(
    children: &mut Children,
    desired: &Desired,
    is_claimed: bool,
) -> Result<Option<Rollout>, ChildError> {
    for stage in [&desired.services[..], std::slice::from_ref(&desired.gate)] {
        for manifest in stage {
            let is_gate = manifest.name == desired.gate.name;
            if is_gate && !is_claimed && !children.is_made(manifest) {
                let message = "the gate is rolled out once the key directory is claimed";
                let outcome = Readiness::Underway(Reason::Waiting, message.into());
                return Ok(Some(Rollout::past_migrations(outcome)));
            }
            children.apply(manifest).await?;
        }
        for manifest in stage {
            if let Some(unfinished) = unfinished(children, manifest)? {
                return Ok(Some(unfinished));
            }
        }
    }
    Ok(None)
}

/// Outcome of a Deployment that is not done.
fn unfinished(children: &Children, manifest: &Manifest) -> Result<Option<Rollout>, ChildError> {
    let deployment: Option<Deployment> = children.get(ChildKind::Deployment, &manifest.name)?;
    let outcome = progress::deployment(&deployment.unwrap_or_default());
    Ok(outcome.map(Rollout::past_migrations))
}

fn migrated() -> Finding {
    Finding::holds(
        ConditionType::MigrationsComplete,
        Reason::Complete,
        "the database's schema is that of the version",
    )
}
