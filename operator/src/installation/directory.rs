//! The key directory of a WaterDataApi: opened where its status allows, verified, and given its plans.

use std::sync::Arc;

use kube::ResourceExt;
use tracing::warn;
use water_keystore::WriteError;
use water_resources::WaterDataApi;
use water_resources::api_key::ApiName;
use water_resources::condition::ConditionStatus;

use super::advice::{Advice, advice, ask, by_cause, sentences};
use super::secrets::{self, Redis};
use super::store_record::StoreRecord;
use super::{InstallationError, place};
use crate::conditions::{ConditionType, Finding, LONGEST_MESSAGE, Readiness, Reason};
use crate::context::Context;
use crate::directories::duties::{Duty, DutyFailure};
use crate::directories::sweep::ALLOW;
use crate::directories::{DirectoryError, Location, OpenDirectory, REPORTED_AFTER};

/// Annotation with the uid of a namespace whose directory may be taken over.
const TAKE_OVER: &str = "waterdata.dev/take-over";

/// Opens the key directory of a WaterDataApi that is not rolled out, so that its keys can be restricted
/// and revoked all the same: one that cannot be decoded, or that is being deleted.
pub async fn keep_open(
    mut record: StoreRecord,
    secret: &str,
    context: &Context,
) -> Result<(), InstallationError> {
    match secrets::redis(&record.meta, secret, &context.client).await {
        Ok(redis) => {
            let open = open(&mut record, &redis, context).await?;
            name_store(&mut record, &redis, &open, context).await
        }
        Err(error) if error.is_invalid() => {
            let (namespace, name) = (&record.meta.namespace, &record.meta.name);
            warn!(namespace, name, error = %error, "the key directory cannot be opened");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens the key directory in a Redis that the status names or announces: nothing is claimed in any other. A status
/// that does neither is written; of one that allows it already the version is compared, since a watch may lag.
async fn open(
    record: &mut StoreRecord,
    redis: &Redis,
    context: &Context,
) -> Result<Arc<OpenDirectory>, InstallationError> {
    let api = &record.meta;
    let place = ApiName {
        namespace: api.namespace.clone().unwrap_or_default(),
        name: api.name.clone().unwrap_or_default(),
    };
    let namespace = context.namespace(&place.namespace).await?;
    let annotations = api.annotations.as_ref();
    let location = Location {
        settings: redis.settings.clone(),
        fingerprint: redis.fingerprint.clone(),
        store: redis.store.clone(),
        gate_store: redis.gate_store.clone(),
        is_behind: record.names.is_behind(&redis.store),
        owner: namespace.uid().unwrap_or_default(),
        api: api.uid.clone().unwrap_or_default(),
        take_over: annotations.and_then(|all| all.get(TAKE_OVER).cloned()),
    };
    match record.names.before(&redis.store) {
        // A directory that is open there is opened again: another leader may have written another Redis since.
        Some(names) => record.write(names, &context.client).await?,
        None => match context.directories.at(&place, &location) {
            Some(open) => return Ok(open),
            None => record.is_unchanged(&context.client).await?,
        },
    }
    Ok(context.directories.open(&place, location)?)
}

/// Names the announced Redis in the status, once this leadership has the directory there complete.
async fn name_store(
    record: &mut StoreRecord,
    redis: &Redis,
    open: &OpenDirectory,
    context: &Context,
) -> Result<(), InstallationError> {
    let names = record.names.after(&redis.store);
    if let Some(names) = names.filter(|_| open.was_claimed()) {
        record.write(names, &context.client).await?;
    }
    Ok(())
}

/// `DirectorySynced`, and the problems of a directory that is complete.
#[derive(Clone, PartialEq, Debug)]
pub struct Synchronisation {
    pub finding: Finding,
    pub advice: Vec<Advice>,
}

impl From<Finding> for Synchronisation {
    fn from(finding: Finding) -> Self {
        let advice = Vec::new();
        Self { finding, advice }
    }
}

/// Opens the key directory and brings its plans to those declared. `api` becomes the object as it is stored after
/// that.
pub async fn synchronise(
    api: &mut WaterDataApi,
    redis: &Redis,
    context: &Context,
) -> Result<Synchronisation, InstallationError> {
    let (place, mut record) = (place(api), StoreRecord::from_api(api));
    let open = open(&mut record, redis, context).await?;
    let written = context.directories.set_plans(&open, context).await;
    let is_delay = written.as_ref().is_err_and(DirectoryError::is_delay);
    if is_delay && open.claiming().is_none_or(|long| long < REPORTED_AFTER) {
        return Err(InstallationError::BeingClaimed);
    }
    name_store(&mut record, redis, &open, context).await?;
    record.put_into(api);
    Ok(match written {
        Ok(()) => in_order(advice(&ask(&open, redis, &place, context).await)),
        Err(error) => lacking(&error),
    })
}

/// `DirectorySynced` of a directory that was not written.
fn lacking(error: &DirectoryError) -> Synchronisation {
    match error.cause() {
        DirectoryError::Write(WriteError::Owned { uid }) => Finding::lacks(
            ConditionType::DirectorySynced,
            Reason::DirectoryOwned,
            format!(
                "the key directory in Redis belongs to a namespace with uid {uid}: give this WaterDataApi a Redis of \
                 its own, or annotate it with {TAKE_OVER}: {uid}"
            ),
        )
        .into(),
        error => {
            Finding::lacks(ConditionType::DirectorySynced, error.reason(), error.to_string()).into()
        }
    }
}

/// Whether this leadership has the directory complete, wherever it is open.
pub fn is_claimed(api: &WaterDataApi, context: &Context) -> bool {
    let open = context.directories.get(&place(api));
    open.is_some_and(|open| open.was_claimed())
}

/// Problems that `Degraded` reports: definitions that lack fields, a sweep that would have removed more than it may by
/// itself, each duty that is not done for the directory, and what the API server does not answer.
pub fn upkeep(api: &WaterDataApi, context: &Context) -> Vec<Advice> {
    let outdated = context.definitions.lacking().map(|fields| {
        let sentence = format!(
            "the API server's custom resource definitions are of an earlier version and drop what is written to these \
             fields: {fields}; run water-operator crd apply, or upgrade the definitions with the chart"
        );
        (Reason::DefinitionsOutdated, sentence)
    });
    let open = context.directories.get(&place(api));
    let held = open.as_ref().and_then(|open| open.held_back());
    let held = held.map(|owners| {
        let sentence = format!(
            "the key directory holds keys of ApiKeys that are gone without having been revoked, too many to be removed \
             unasked: the keys of {owners} still work; restore the ApiKeys, or annotate this WaterDataApi with \
             {ALLOW}: \"{owners}\" to withdraw them"
        );
        (Reason::SweepHeld, sentence)
    });
    let former = context.directories.former(&place(api));
    let former = former.iter().map(|former| (former, Duty::WriteFormer));
    let duties = [
        Duty::FindStrays,
        Duty::Sweep,
        Duty::Count,
        Duty::Forget,
        Duty::ReadUses,
    ];
    let present = open.iter().flat_map(|open| duties.map(|duty| (open, duty)));
    let failed = former
        .chain(present)
        .filter_map(|(open, duty)| Some(open.failure(duty)?.of(duty)));
    let unanswered = context.caches.uncompared().into_iter();
    let failed = failed.chain(unanswered.chain(context.definitions.unread()));
    let problems = outdated.into_iter().chain(held);
    problems
        .map(|(reason, sentence)| Advice { reason, sentence })
        .chain(by_cause(failed))
        .collect()
}

/// `DirectorySynced` after a pass that was given up; `None`: nothing else is known than before.
pub fn unfinished(api: &WaterDataApi, error: &str, context: &Context) -> Option<Finding> {
    let lacks = |reason, message| Finding::lacks(ConditionType::DirectorySynced, reason, message);
    let Some(open) = context.directories.get(&place(api)) else {
        return Some(lacks(Reason::ApiServerError, error.to_owned()));
    };
    let DutyFailure {
        reason, message, ..
    } = open.failure(Duty::Rebuild)?;
    let means = Duty::Rebuild.failed();
    Some(lacks(reason, format!("{means}: {message}")))
}

/// Reason of the worst problem, with all that is to say.
fn in_order(advice: Vec<Advice>) -> Synchronisation {
    let complete = "the key directory is complete and has the declared plans";
    let (reason, message) = match advice.first() {
        None => (Reason::Published, complete.to_owned()),
        Some(worst) => {
            let begin = format!("{complete}, but ");
            let rest = sentences(&advice, LONGEST_MESSAGE - begin.len());
            (worst.reason, begin + &rest)
        }
    };
    let finding = Finding::holds(ConditionType::DirectorySynced, reason, message);
    Synchronisation { finding, advice }
}

/// Readiness that reports a directory which is not in order first, unless somebody has to act on the children anyway.
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
