//! The key directory of a WaterDataApi: opened, verified, and given its plans.

use kube::ResourceExt;
use water_keystore::WriteError;

use super::secrets::Secrets;
use super::{InstallationError, place};
use crate::conditions::{Aspect, Finding, Outcome, Reason};
use crate::context::Context;
use crate::crd::WaterDataApi;
use crate::directories::health::is_unguarded;
use crate::directories::{DirectoryError, Place};

/// The uid of a namespace whose directory may be taken over.
const TAKE_OVER: &str = "waterdata.dev/take-over";

/// Opens the key directory and brings its plans to those declared.
pub async fn synchronise(
    api: &WaterDataApi,
    secrets: &Secrets,
    context: &Context,
) -> Result<Finding, InstallationError> {
    let place = place(api);
    let namespace = context.namespace(&place.namespace).await?;
    let open = context.directories.open(
        &place,
        Place {
            settings: secrets.redis.clone(),
            fingerprint: secrets.redis_fingerprint.clone(),
            owner: namespace.uid().unwrap_or_default(),
            api: api.uid().unwrap_or_default(),
            take_over: api.annotations().get(TAKE_OVER).cloned(),
        },
    )?;
    let written = context.directories.set_plans(&open, context).await;
    let unguarded = open.observed().is_some_and(|seen| is_unguarded(&seen));
    Ok(match written {
        Ok(()) if unguarded => Finding::holds(
            Aspect::DirectorySynced,
            Reason::ReplicasUnguarded,
            "the key directory is complete and has the declared plans, but a failover could undo revocations: \
             set min-replicas-to-write 1 and min-replicas-max-lag 5 in the Redis that has replicas",
        ),
        Ok(()) => Finding::holds(
            Aspect::DirectorySynced,
            Reason::Published,
            "the key directory is complete and has the declared plans",
        ),
        Err(DirectoryError::Write(WriteError::Owned { uid })) => Finding::lacks(
            Aspect::DirectorySynced,
            Reason::DirectoryOwned,
            format!(
                "the key directory in Redis belongs to a namespace with uid {uid}: give this WaterDataApi a Redis of \
                 its own, or annotate it with {TAKE_OVER}: {uid}"
            ),
        ),
        Err(error) => Finding::lacks(
            Aspect::DirectorySynced,
            Reason::StoreUnavailable,
            error.to_string(),
        ),
    })
}

/// A directory that is not in order is said first, unless somebody has to act on the children anyway.
pub fn worse(outcome: Outcome, directory: &Finding) -> Outcome {
    let message = directory.message.clone();
    match (outcome, directory.reason) {
        (stuck @ Outcome::Stuck(..), _) => stuck,
        (_, Reason::DirectoryOwned) => Outcome::Stuck(Reason::DirectoryOwned, message),
        (_, reason) => Outcome::Underway(reason, message),
    }
}
