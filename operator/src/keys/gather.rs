//! Reads, once, all that a pass over an ApiKey decides by.

mod directory;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::core::DeserializeGuard;
use water_domain::{KeyHash, PlanName, Timestamp};
use water_resources::api_key::ApiName;
use water_resources::{ApiKey, WaterDataApi};

use super::admission::{self, Labels, Membership, Refusal};
use super::error::KeyError;
use super::memory::MadeKey;
use super::plans;
use super::record::Issued;
use super::secret::{Found, Written};
use super::seen::{Directory, Secret, Seen};
use super::subject::Subject;
use crate::caches::Installation;
use crate::client;
use crate::conditions::Readiness;
use crate::context::Context;
use crate::directories::CacheEpoch;
pub use directory::DirectoryReading;

/// What a pass has read: [`Seen`] to decide by, the rest to carry the decision out.
pub struct Gathered {
    pub subject: Subject,
    /// The WaterDataApi that it belongs to, or would.
    pub place: Option<ApiName>,
    /// The same, if it exists and can be decoded.
    pub api: Option<WaterDataApi>,
    /// Why it is not admitted.
    pub refusal: Option<Refusal>,
    /// Its Secret, or one to adopt.
    pub secret: Option<Written>,
    /// Every key of it that is known, by hash.
    pub issued: BTreeMap<KeyHash, Issued>,
    /// The key that is made and not revealed.
    pub made: Option<Arc<MadeKey>>,
    /// The directory and what it holds; `None`: it cannot be read, or need not be.
    pub reading: Option<DirectoryReading>,
    /// Why the directory cannot be read.
    pub trouble: Option<Readiness>,
    /// Gates' pods that are left of a WaterDataApi that is gone.
    pub remaining: BTreeSet<String>,
    /// What to decide by.
    pub seen: Seen<KeyHash, PlanName>,
}

/// Reads everything about one ApiKey, which the caller has found in the cache since `epoch`.
pub async fn gather(
    watched: &DeserializeGuard<ApiKey>,
    epoch: CacheEpoch,
    context: &Context,
    now: Timestamp,
) -> Result<Gathered, KeyError> {
    let subject = Subject::of(watched, &context.memory, &context.client).await?;
    let apis = context.apis.state();
    let labels = labels(&subject, &apis, context).await?;
    let Membership {
        place,
        api,
        admission,
        refusal,
    } = admission::membership(&subject, &labels, &apis, context.scope);
    let is_deleting = subject.meta.deletion_timestamp.is_some();
    let is_prepared = subject.has_finalizer && (is_deleting || subject.has_label);
    let rotation = subject.rotation();
    let is_wanted = |made: &Arc<MadeKey>| {
        rotation.is_none_or(|rotation| made.issued.revision >= rotation.revision)
    };
    let made = context.memory.made(subject.uid()).filter(is_wanted);
    let secrets = &context.secrets;
    let inspected = secrets.inspect(
        &subject,
        admission,
        api.as_ref(),
        made.as_deref(),
        is_prepared,
    );
    let (found, seen) = inspected.await?;
    let material = subject.spec().map(|spec| &spec.material);
    let is_generated = material.is_some_and(|material| material.hash.is_none());
    let is_lost = found == Found::Missing || seen == Secret::Edited;
    let is_to_be_made = is_generated && is_prepared && !is_deleting && is_lost && made.is_none();
    let is_terminating =
        is_to_be_made && client::is_terminating(&context.client, subject.namespace()).await?;
    let in_secret: Vec<&Issued> = match &found {
        // Annotations that somebody else wrote could name another's hash, which would be revoked.
        Found::Own(written) if is_deleting => {
            secrets.written(&subject, written).into_iter().collect()
        }
        Found::Own(written) => written.keys().collect(),
        Found::Orphan(written) if !is_deleting => written.keys().collect(),
        _ => Vec::new(),
    };
    let others = made.iter().map(|made| &made.issued).chain(in_secret);
    let issued = subject.issued(others.cloned(), now);
    let wider_plans = api.as_ref().zip(subject.spec());
    let wider_plans = wider_plans.map(|(api, spec)| plans::wider(api, &spec.plan));
    let mut gathered = Gathered {
        seen: Seen {
            is_deleting,
            has_finalizer: subject.has_finalizer,
            has_label: subject.has_label,
            is_terminating,
            spec: subject.declared(),
            restrictions: subject.restrictions,
            named: subject.revocable(&issued),
            status: subject.announcement(),
            admission,
            wider_plans: wider_plans.unwrap_or_default(),
            secret: seen,
            made: made.as_ref().map(|made| made.issued.hash),
            is_id_taken: false,
            directory: Directory::Unnamed,
        },
        subject,
        place,
        api,
        refusal,
        secret: found.written().cloned(),
        issued,
        made,
        reading: None,
        trouble: None,
        remaining: BTreeSet::new(),
    };
    gathered.seen.is_id_taken = gathered.is_id_taken(&context.keys);
    if is_prepared || gathered.seen.spec.is_none() {
        gathered.seen.directory = gathered.read(epoch, context).await?;
    }
    Ok(gathered)
}

/// The labels of the ApiKey's namespace, if they decide anything.
async fn labels(
    subject: &Subject,
    apis: &[Arc<Installation>],
    context: &Context,
) -> Result<Labels, KeyError> {
    let mut readable = apis.iter().filter_map(|api| api.0.as_ref().ok());
    let is_deleting = subject.meta.deletion_timestamp.is_some();
    if is_deleting || !readable.any(admission::needs_labels) {
        return Ok(Labels::new());
    }
    let namespace = context.namespace(subject.namespace()).await?;
    Ok(namespace.metadata.labels.unwrap_or_default())
}
