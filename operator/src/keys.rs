//! The ApiKey controller: admit, publish, reveal, and in the end revoke.
//!
//! A pass looks at one ApiKey and brings the directory, the Secret and the status to what is
//! declared. Each of its steps can be repeated, and a kill between any two of them is made good by
//! the next pass. Waiting is coming back later, never a held worker.

pub mod admission;
pub mod finalizer;
mod issue;
pub mod publish;
pub mod record;
pub mod report;
mod revoke;
pub mod secret;
pub mod status;
mod undecodable;
pub mod unrevealed;

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action;
use tracing::{info, warn};
use water_domain::{Plan, Timestamp};
use water_keystore::{Applied, Change, Contents, Removal};

use crate::clock;
use crate::conditions::{Aspect, Outcome, Reason, find};
use crate::context::Context;
use crate::crd::api_key::{IssuedAt, IssuedKey};
use crate::crd::condition::ConditionStatus;
use crate::crd::{ApiKey, WaterDataApi};
use crate::directories::{DirectoryError, OpenDirectory};
use crate::metrics::{Kind, PassOutcome};
use admission::{Labels, Refusal};
use publish::{Held, Hindrance};
use record::InvalidStatus;
use report::Report;

/// A pass is given up after this long; what hangs must not hold a worker.
const PASS_WITHIN: Duration = Duration::from_secs(15);
/// Why a pass was given up. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The API server refused or was away.
    #[error("asking the API server: {0}")]
    Kube(#[from] kube::Error),
    /// Redis or the directory refused.
    #[error("writing the key directory: {0}")]
    Directory(#[from] DirectoryError),
    /// The status cannot be built upon.
    #[error(transparent)]
    Status(#[from] InvalidStatus),
    /// The system has no randomness.
    #[error("asking the system for random bytes: {0}")]
    Random(getrandom::Error),
    /// The WaterDataApi's first pass under this leader opens it.
    #[error("the key directory is not open yet")]
    NotOpen,
    /// It took too long.
    #[error("the pass took longer than {PASS_WITHIN:?}")]
    TooLong,
}

/// Where the keys of a WaterDataApi are published.
pub struct Target<'a> {
    /// What the controllers share.
    pub context: &'a Context,
    /// The WaterDataApi's name and namespace.
    pub place: &'a IssuedAt,
    /// Its directory.
    pub open: &'a OpenDirectory,
}

impl Target<'_> {
    /// Writes changes into the directory, all or none.
    pub async fn apply(&self, changes: &[Change]) -> Result<Applied, KeyError> {
        let wanted = |stored| contents(self.context, self.place, stored);
        let directories = &self.context.directories;
        Ok(directories.apply(self.open, &wanted, changes).await?)
    }
}

/// All that the directory of a WaterDataApi shall hold, as the watches last told. `stored` are the
/// plans that it had.
pub fn contents(context: &Context, place: &IssuedAt, stored: Vec<Plan>) -> Contents {
    let keys = context.all_keys();
    let keys: Vec<&ApiKey> = keys.iter().filter_map(|key| key.0.as_ref().ok()).collect();
    let declared = context.api_at(place).as_ref().map(record::plans);
    let entries = keys
        .iter()
        .flat_map(|key| record::entries(key, place, secret::known(key, context)));
    Contents {
        entries: entries.collect(),
        plans: record::with_retained(
            declared.unwrap_or_default(),
            stored,
            place,
            keys.iter().copied(),
        ),
    }
}

/// One pass over an ApiKey, in the controller's words.
pub async fn reconcile(
    key: Arc<DeserializeGuard<ApiKey>>,
    context: Arc<Context>,
) -> Result<Action, KeyError> {
    let key = match &key.0 {
        Ok(key) => key,
        Err(invalid) => {
            undecodable::tell(&key, invalid, &context, clock::now()).await?;
            return Ok(Action::requeue(report::IDLE));
        }
    };
    let pass = tokio::time::timeout(PASS_WITHIN, pass(key, &context, clock::now()));
    let result = pass.await.unwrap_or(Err(KeyError::TooLong));
    let outcome = if result.is_ok() {
        PassOutcome::Done
    } else {
        PassOutcome::Failed
    };
    context.metrics.pass(Kind::ApiKey, outcome);
    if result.is_ok() {
        context.backoff.succeeded(&key.uid().unwrap_or_default());
    }
    result
}

/// When a pass that was given up is tried again.
pub fn retry(
    key: Arc<DeserializeGuard<ApiKey>>,
    error: &KeyError,
    context: Arc<Context>,
) -> Action {
    let meta = kube::Resource::meta(&*key);
    if is_worth_telling(error) {
        warn!(namespace = meta.namespace, name = meta.name, %error, "an ApiKey's pass was given up");
    }
    Action::requeue(
        context
            .backoff
            .failed(meta.uid.as_deref().unwrap_or_default()),
    )
}

/// Not when somebody else wrote first, nor when the directory is about to be opened.
fn is_worth_telling(error: &KeyError) -> bool {
    match error {
        KeyError::Kube(kube::Error::Api(status)) => !status.is_conflict(),
        KeyError::NotOpen => false,
        _ => true,
    }
}

async fn pass(key: &ApiKey, context: &Context, now: Timestamp) -> Result<Action, KeyError> {
    if key.metadata.deletion_timestamp.is_some() {
        return revoke::run(key, context, now).await;
    }
    let key = finalizer::ensure(key, context).await?;
    let (key, report) = match admitted(&key, context).await? {
        Ok((place, api)) => match publish(key, &place, &api, context, now).await? {
            Progress::Reported(key, report) => (*key, *report),
            Progress::Awaited => return Ok(Action::requeue(report::TOLD_AFTER)),
        },
        Err(refusal) => {
            withdraw(&key, refusal.reason, context).await?;
            let report = report::refused(&key, refusal);
            (key, report)
        }
    };
    let status = status::status(&key, &report, now);
    let known = key.status.as_ref().and_then(|status| status.key_id.clone());
    let key = status::write(&key, status, context).await?;
    let key_id = key.status.as_ref().and_then(|status| status.key_id.clone());
    if key_id != known {
        info!(
            namespace = key.namespace(),
            name = key.name_any(),
            key.id = key_id,
            "key issued"
        );
    }
    Ok(Action::requeue(report.again))
}

type Admission = Result<(IssuedAt, WaterDataApi), Refusal>;

/// The WaterDataApi that accepts the key, or why none does.
async fn admitted(key: &ApiKey, context: &Context) -> Result<Admission, KeyError> {
    let apis: Vec<WaterDataApi> = context
        .apis
        .state()
        .iter()
        .filter_map(|api| api.0.as_ref().ok().cloned())
        .collect();
    let labels = if apis.iter().any(admission::needs_labels) {
        let namespace = context
            .namespace(&key.namespace().unwrap_or_default())
            .await?;
        namespace.metadata.labels.unwrap_or_default()
    } else {
        Labels::new()
    };
    let place = match admission::resolve(key, &labels, &apis, context.scope) {
        Ok(place) => place,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let Some(api) = context.api_at(&place) else {
        let message = format!(
            "the WaterDataApi {}/{} does not exist: create it, or create another ApiKey that names another",
            place.namespace, place.name
        );
        return Ok(Err(Refusal {
            reason: Reason::ApiNotFound,
            message,
        }));
    };
    Ok(admission::admit(key, &labels, &api, context.scope).map(|()| (place, api)))
}

/// How far a pass came.
enum Progress {
    /// To something that the status says, of the ApiKey as last written.
    Reported(Box<ApiKey>, Box<Report>),
    /// To a write that the gates have not acknowledged yet, a moment ago.
    Awaited,
}

async fn publish(
    key: ApiKey,
    place: &IssuedAt,
    api: &WaterDataApi,
    context: &Context,
    now: Timestamp,
) -> Result<Progress, KeyError> {
    let open = match opened(place, Some(api), context)? {
        Ok(open) => open,
        Err(message) => {
            let outcome = Outcome::Underway(Reason::Waiting, message);
            let hindrance = Hindrance::Directory(outcome);
            return Ok(held_up(Held { key, hindrance }, place));
        }
    };
    let target = Target {
        context,
        place,
        open: &open,
    };
    let material = key.spec.material.clone();
    let published = match (&material.hash, &material.generated) {
        (Some(hash), _) => publish::brought(key, hash, &target, now).await?,
        (None, generated) => {
            publish::generated(
                key,
                &generated.clone().unwrap_or_default(),
                api,
                &target,
                now,
            )
            .await?
        }
    };
    match published {
        Ok(published) => {
            let last_used = last_used(&target, &published.issued).await;
            let report = report::in_force(&published, api, place, last_used, now)?;
            Ok(Progress::Reported(
                Box::new(published.key),
                Box::new(report),
            ))
        }
        Err(held) => Ok(held_up(held, place)),
    }
}

/// A wait that has only begun is no news: the gates' word brings the next pass.
fn held_up(held: Held, place: &IssuedAt) -> Progress {
    match &held.hindrance {
        Hindrance::Gates { since, .. } if since.elapsed() < report::TOLD_AFTER => Progress::Awaited,
        _ => {
            let report = report::hindered(&held, place);
            Progress::Reported(Box::new(held.key), Box::new(report))
        }
    }
}

/// The directory of a WaterDataApi, or why it cannot be opened.
fn opened(
    place: &IssuedAt,
    api: Option<&WaterDataApi>,
    context: &Context,
) -> Result<Result<Arc<OpenDirectory>, String>, KeyError> {
    if let Some(open) = context.directories.get(place) {
        return Ok(Ok(open));
    }
    let conditions = api
        .and_then(|api| api.status.as_ref())
        .map(|status| status.conditions.as_slice());
    match find(conditions.unwrap_or_default(), Aspect::DirectorySynced) {
        Some(synced) if synced.status == ConditionStatus::False => Ok(Err(format!(
            "the key directory of the WaterDataApi {}/{} cannot be opened: {}",
            place.namespace, place.name, synced.message
        ))),
        _ => Err(KeyError::NotOpen),
    }
}

/// The last use to ten minutes. It is a comfort: a pass does not fail for it.
async fn last_used(target: &Target<'_>, issued: &IssuedKey) -> Option<Timestamp> {
    let key = issued.key_id.parse().ok()?;
    let answer = target.open.directory().last_used(&[key]).await;
    let millis = answer.ok()?.into_iter().next()??.as_millis();
    let grain = i64::try_from(report::IDLE.as_millis()).ok()?;
    Timestamp::from_millis(millis - millis.rem_euclid(grain))
}

/// Takes what was published for a key that is not admitted out of the directory.
async fn withdraw(key: &ApiKey, reason: Reason, context: &Context) -> Result<(), KeyError> {
    if record::keeps(reason.as_str()) {
        return Ok(());
    }
    context.unrevealed.forget(key);
    let before = key.status.clone().unwrap_or_default();
    let removals: Vec<Change> = record::hashes(&before)
        .into_iter()
        .map(|hash| Change::Remove {
            hash,
            owner: record::owner(key),
            removal: Removal::Withdraw,
        })
        .collect();
    if let Some(place) = &before.api
        && let Some(open) = context.directories.get(place)
        && !removals.is_empty()
    {
        open.waits.forget(&record::owner(key));
        let target = Target {
            context,
            place,
            open: &open,
        };
        target.apply(&removals).await?;
    }
    Ok(())
}
