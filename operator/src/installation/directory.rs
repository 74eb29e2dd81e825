//! The key directory of a WaterDataApi: opened, verified, and given its plans.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{ObjectMeta, Patch, PatchParams};
use serde_json::json;
use tracing::warn;
use water_keystore::WriteError;
use water_resources::WaterDataApi;
use water_resources::api_key::ApiName;
use water_resources::condition::ConditionStatus;

use super::advice::{Advice, advice, ask};
use super::secrets::{self, Redis};
use super::{InstallationError, place};
use crate::client::stored;
use crate::conditions::{Aspect, Finding, RECORD_MANAGER, Readiness, Reason};
use crate::context::Context;
use crate::directories::sweep::ALLOW;
use crate::directories::{DirectoryError, Location, OpenDirectory};

/// The uid of a namespace whose directory may be taken over.
const TAKE_OVER: &str = "waterdata.dev/take-over";

/// In the place of a Redis, in the status: the directory is whole in none. (An operator of the version before
/// names none at all, and may have left it whole.)
const NO_STORE: &str = "";

/// Opens the key directory of a WaterDataApi that is not rolled out, so that its keys can be restricted
/// and revoked all the same: one that cannot be decoded, or that is being deleted.
pub async fn keep_open(
    api: &ObjectMeta,
    told: Option<&str>,
    secret: &str,
    context: &Context,
) -> Result<(), InstallationError> {
    match secrets::redis(api, secret, &context.client).await {
        Ok(redis) => open(api, told, &redis, context).await.map(drop),
        Err(error) if error.is_invalid() => {
            let (namespace, name) = (&api.namespace, &api.name);
            warn!(namespace, name, error = %error, "the key directory cannot be opened");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// `told`: the Redis that the status names. It becomes [`NO_STORE`] before another Redis is written, so that
/// no leader takes the first one's directory for whole when it is returned to.
async fn open(
    api: &ObjectMeta,
    told: Option<&str>,
    redis: &Redis,
    context: &Context,
) -> Result<Arc<OpenDirectory>, InstallationError> {
    let place = ApiName {
        namespace: api.namespace.clone().unwrap_or_default(),
        name: api.name.clone().unwrap_or_default(),
    };
    let is_behind = told.is_some_and(|told| *told != redis.store);
    if is_behind && told != Some(NO_STORE) {
        forget_store(&place, context).await?;
    }
    let namespace = context.namespace(&place.namespace).await?;
    let annotations = api.annotations.as_ref();
    let opened = context.directories.open(
        &place,
        Location {
            settings: redis.settings.clone(),
            fingerprint: redis.fingerprint.clone(),
            store: redis.store.clone(),
            gate_store: redis.gate_store.clone(),
            is_behind,
            owner: namespace.uid().unwrap_or_default(),
            api: api.uid.clone().unwrap_or_default(),
            take_over: annotations.and_then(|all| all.get(TAKE_OVER).cloned()),
        },
    );
    Ok(opened?)
}

/// Takes the Redis out of the status, whether the rest can be decoded or not.
async fn forget_store(place: &ApiName, context: &Context) -> kube::Result<()> {
    let apis = stored::<WaterDataApi>(&context.client, &place.namespace);
    let patch = Patch::Merge(json!({ "status": { "directoryStore": NO_STORE } }));
    let params = PatchParams::apply(RECORD_MANAGER);
    apis.patch_status(&place.name, &params, &patch).await?;
    Ok(())
}

/// `DirectorySynced`, and what is wrong although the directory is complete.
#[derive(Clone, PartialEq, Debug)]
pub struct Synchronised {
    pub finding: Finding,
    pub advice: Vec<Advice>,
}

impl From<Finding> for Synchronised {
    fn from(finding: Finding) -> Self {
        let advice = Vec::new();
        Self { finding, advice }
    }
}

/// Opens the key directory and brings its plans to those declared.
pub async fn synchronise(
    api: &WaterDataApi,
    redis: &Redis,
    context: &Context,
) -> Result<Synchronised, InstallationError> {
    let place = place(api);
    let open = open(&api.metadata, told_store(api), redis, context).await?;
    let written = context.directories.set_plans(&open, context).await;
    Ok(match written {
        Ok(()) => in_order(advice(&ask(&open, redis, &place, context).await)),
        Err(DirectoryError::Write(WriteError::Owned { uid })) => Finding::lacks(
            Aspect::DirectorySynced,
            Reason::DirectoryOwned,
            format!(
                "the key directory in Redis belongs to a namespace with uid {uid}: give this WaterDataApi a Redis of \
                 its own, or annotate it with {TAKE_OVER}: {uid}"
            ),
        )
        .into(),
        Err(error) => {
            Finding::lacks(Aspect::DirectorySynced, error.reason(), error.to_string()).into()
        }
    })
}

/// The Redis that the status names.
pub fn told_store(api: &WaterDataApi) -> Option<&str> {
    api.status.as_ref()?.directory_store.as_deref()
}

/// The Redis in which this leadership has claimed the directory for this WaterDataApi.
pub fn claimed_in(api: &WaterDataApi, context: &Context) -> Option<String> {
    let open = context.directories.get(&place(api))?;
    open.was_claimed().then(|| open.store().to_owned())
}

/// Whether the directory's last sweep would have removed more than it may by itself.
pub fn sweep(api: &WaterDataApi, context: &Context) -> Option<Finding> {
    let owners = context.directories.get(&place(api))?.held_back()?;
    let message = format!(
        "the key directory holds keys of {owners} ApiKeys that are gone without having been revoked, too many to be \
         removed unasked: their keys still work; restore the ApiKeys, or annotate this WaterDataApi with \
         {ALLOW}: \"{owners}\" to withdraw them",
    );
    Some(Finding::holds(Aspect::Degraded, Reason::SweepHeld, message))
}

/// The worst gives the reason, and all is said.
fn in_order(advice: Vec<Advice>) -> Synchronised {
    let complete = "the key directory is complete and has the declared plans";
    let (reason, message) = match advice.first() {
        None => (Reason::Published, complete.to_owned()),
        Some(worst) => {
            let sentences: Vec<&str> = advice.iter().map(|said| &*said.sentence).collect();
            (
                worst.reason,
                format!("{complete}, but {}", sentences.join("; ")),
            )
        }
    };
    let finding = Finding::holds(Aspect::DirectorySynced, reason, message);
    Synchronised { finding, advice }
}

/// A directory that is not in order is said first, unless somebody has to act on the children anyway.
pub fn worse(outcome: Readiness, directory: &Finding) -> Readiness {
    if directory.status == ConditionStatus::True {
        return outcome;
    }
    let mut message = directory.message.clone();
    // What waits for the directory.
    if let Readiness::Underway(Reason::Waiting, waiting) = &outcome {
        message = format!("{message}; {waiting}");
    }
    match (outcome, directory.reason) {
        (stuck @ Readiness::Stuck(..), _) => stuck,
        (_, Reason::DirectoryOwned) => Readiness::Stuck(Reason::DirectoryOwned, message),
        (_, reason) => Readiness::Underway(reason, message),
    }
}
