//! The key directory of a WaterDataApi: opened, verified, and given its plans.

use kube::ResourceExt;
use water_keystore::WriteError;

use super::secrets::Secrets;
use super::{InstallationError, place};
use crate::conditions::{Aspect, Finding, Outcome, Reason};
use crate::context::Context;
use crate::crd::WaterDataApi;
use crate::directories::{DirectoryError, Place};
use crate::keys;

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
            take_over: api.annotations().get(TAKE_OVER).cloned(),
        },
    )?;
    let declared = keys::record::plans(api);
    let contents = || keys::contents(context, &place, declared.clone());
    let written = async {
        open.verify().await?;
        let writer = context.directories.writer(&open, contents).await?;
        let stored = open.directory().plans().await?;
        let published = context.all_keys();
        let published = published.iter().filter_map(|key| key.0.as_ref().ok());
        let plans = keys::record::with_retained(declared.clone(), stored, &place, published);
        let written = writer.set_plans(&plans).await;
        open.forget_after(written.as_ref().err()).await;
        Ok::<_, DirectoryError>(written?)
    };
    Ok(match written.await {
        Ok(_) => Finding::holds(
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
