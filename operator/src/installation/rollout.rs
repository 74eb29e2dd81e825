//! The steps of a rollout, in their order, each waiting for the one before.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use water_resources::WaterDataApi;

use super::children::{ChildError, Children};
use super::manifest::{ChildKind, Desired, Manifest};
use super::progress::{self, Step};
use super::report::waiting;
use crate::conditions::{Aspect, Finding, Outcome, Reason, holds};

/// How far the children are.
pub struct Rollout {
    /// `MigrationsComplete`.
    pub migrations: Finding,
    /// `Ready`, `Reconciling` and `Stalled`.
    pub outcome: Outcome,
}

impl Rollout {
    /// Nothing was touched: what is known of the migrations stays.
    pub fn untouched(api: &WaterDataApi, outcome: Outcome) -> Self {
        let conditions = api
            .status
            .as_ref()
            .map(|status| status.conditions.as_slice())
            .unwrap_or_default();
        let known = holds(conditions, Aspect::MigrationsComplete);
        let migrations = if known {
            migrated()
        } else {
            waiting(Aspect::MigrationsComplete)
        };
        Self {
            migrations,
            outcome,
        }
    }

    fn underway(migrations: Finding, reason: Reason, message: String) -> Self {
        Self {
            migrations,
            outcome: Outcome::Underway(reason, message),
        }
    }

    fn failed(migrations: Finding, reason: Reason, message: String) -> Self {
        Self {
            migrations,
            outcome: Outcome::Stuck(reason, message),
        }
    }
}

/// Groundwork → migration → services → gate → exposure → portal → prune. Each step waits for the one before.
///
/// Gates load whatever stands in Redis. Until the key directory is claimed for this WaterDataApi that
/// may be what an earlier one or another installation left, with keys that were revoked since: gates
/// that run go on, and none is made or changed. What hinders the portal leaves its Deployment as it is.
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
            return Ok(Rollout::failed(
                migrated(),
                Reason::PortalInvalid,
                hindrance,
            ));
        }
        children.apply(manifest).await?;
        if let Some(unfinished) = unfinished(children, manifest)? {
            return Ok(unfinished);
        }
    }
    children.prune(desired).await?;
    let outcome = Outcome::InForce(Reason::Complete, "everything is as declared".into());
    Ok(Rollout {
        migrations: migrated(),
        outcome,
    })
}

/// Applies the migration Job; answers how far it is, unless it is done.
async fn migrate(
    children: &mut Children,
    desired: &Desired,
) -> Result<Option<Rollout>, ChildError> {
    children.apply(&desired.migration).await?;
    let job: Option<Job> = children.get(ChildKind::Job, &desired.migration.name)?;
    let step = job
        .as_ref()
        .map_or_else(progress::unknown, progress::migration);
    let lacks = |reason, message: &str| Finding::lacks(Aspect::MigrationsComplete, reason, message);
    Ok(match step {
        Step::Complete => None,
        Step::Underway(message) => {
            let finding = lacks(Reason::Migrating, &message);
            Some(Rollout::underway(finding, Reason::Migrating, message))
        }
        Step::Failed(message) => {
            let finding = lacks(Reason::MigrationFailed, &message);
            Some(Rollout::failed(finding, Reason::MigrationFailed, message))
        }
    })
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
                let rollout = Rollout::underway(migrated(), Reason::Waiting, message.into());
                return Ok(Some(rollout));
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

/// How far a Deployment is, unless it is done.
fn unfinished(children: &Children, manifest: &Manifest) -> Result<Option<Rollout>, ChildError> {
    let deployment: Option<Deployment> = children.get(ChildKind::Deployment, &manifest.name)?;
    let step = deployment
        .as_ref()
        .map_or_else(progress::unknown, progress::deployment);
    Ok(match step {
        Step::Complete => None,
        Step::Underway(message) => Some(Rollout::underway(migrated(), Reason::RollingOut, message)),
        Step::Failed(message) => Some(Rollout::failed(migrated(), Reason::RolloutFailed, message)),
    })
}

fn migrated() -> Finding {
    Finding::holds(
        Aspect::MigrationsComplete,
        Reason::Complete,
        "the database's schema is that of the version",
    )
}
