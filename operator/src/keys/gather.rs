//! Reads, once, all that a pass over an ApiKey decides by.

mod directory;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::core::DeserializeGuard;
use water_domain::{KeyHash, PlanName, Timestamp};
use water_resources::api_key::ApiName;
use water_resources::{ApiKey, WaterDataApi};

use super::admission::{self, Refusal};
use super::error::KeyError;
use super::memory::MadeKey;
use super::record::Issued;
use super::secret::{Found, Written};
use super::seen::{Admission, Directory, Seen};
use super::subject::Subject;
use super::{finalizer, key_ids, plans};
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
    let (place, found_api, refusal) = membership(&subject, context).await?;
    let api = found_api.as_ref();
    let is_deleting = subject.meta.deletion_timestamp.is_some();
    let admission = match &refusal {
        Some(refusal) => refusal.admission(),
        // Nothing is admitted any more.
        None if is_deleting || subject.key.is_err() => Admission::Hindered,
        None => Admission::Admitted,
    };
    let has_finalizer = finalizer::is_on(&subject.meta);
    let has_label = subject.key.as_ref().is_ok_and(finalizer::is_labelled);
    let is_prepared = has_finalizer && (is_deleting || has_label);
    let rotation = subject.rotation();
    let is_wanted = |made: &Arc<MadeKey>| {
        rotation.is_none_or(|rotation| made.issued.revision >= rotation.revision)
    };
    let made = context.memory.made(subject.uid()).filter(is_wanted);
    let secrets = &context.secrets;
    let inspected = secrets.inspect(&subject, admission, api, made.as_deref(), is_prepared);
    let (found, seen) = inspected.await?;
    let material = subject.spec().map(|spec| &spec.material);
    let is_generated = material.is_some_and(|material| material.hash.is_none());
    let is_to_be_made =
        is_generated && is_prepared && !is_deleting && found == Found::Missing && made.is_none();
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
    let wider_plans = api.zip(subject.spec());
    let wider_plans = wider_plans.map(|(api, spec)| plans::wider(api, &spec.plan));
    let mut gathered = Gathered {
        seen: Seen {
            is_deleting,
            has_finalizer,
            has_label,
            is_terminating,
            spec: subject.declared(),
            restrictions: subject.restrictions,
            named: subject.revocable(&issued),
            status: subject.announcement(),
            admission,
            wider_plans: wider_plans.unwrap_or_default(),
            secret: seen,
            made: made.as_ref().map(|made| made.issued.hash),
            is_id_taken: match (&subject.key, &place) {
                (Ok(key), Some(place)) => key_ids::is_taken(key, place, &context.keys),
                _ => false,
            },
            directory: Directory::Unnamed,
        },
        subject,
        place,
        api: found_api,
        refusal,
        secret: found.written().cloned(),
        issued,
        made,
        reading: None,
        trouble: None,
        remaining: BTreeSet::new(),
    };
    if is_prepared || gathered.seen.spec.is_none() {
        gathered.seen.directory = gathered.read(epoch, context).await?;
    }
    Ok(gathered)
}

/// The WaterDataApi in whose directory a key is or may be declared; the same, if it exists and can be
/// decoded; and why it does not admit the key.
type Membership = (Option<ApiName>, Option<WaterDataApi>, Option<Refusal>);

/// Finds the WaterDataApi that an ApiKey belongs to, and asks it.
async fn membership(subject: &Subject, context: &Context) -> Result<Membership, KeyError> {
    let named = subject.status.api.clone();
    let key = match &subject.key {
        Ok(key) if subject.meta.deletion_timestamp.is_none() => key,
        _ => return former_membership(subject, context).await,
    };
    let apis = context.all_apis();
    let labels = labels(subject, &apis, context).await?;
    let (place, api, refusal) = match admission::resolve(key, &labels, &apis, context.scope) {
        Err(refusal) => (None, None, Some(refusal)),
        Ok(place) => match context.api_at(&place).as_deref() {
            Some(DeserializeGuard(Ok(api))) => {
                let refusal = admission::admit(key, &labels, api, context.scope).err();
                (Some(place), Some(api.clone()), refusal)
            }
            other => (None, None, Some(admission::absent(&place, other.is_some()))),
        },
    };
    // Before the status names it nothing is declared there.
    let place = if refusal.is_none() { place } else { named };
    Ok((place, api, refusal))
}

/// That of an ApiKey that is being deleted or cannot be decoded: only what the status names counts. The
/// namespace of a living one may be refused, too.
async fn former_membership(subject: &Subject, context: &Context) -> Result<Membership, KeyError> {
    let place = subject.status.api.clone();
    let api = place.as_ref().and_then(|place| context.decoded_api(place));
    let refusal = match &api {
        Some(api) if subject.meta.deletion_timestamp.is_none() => {
            let labels = labels(subject, std::slice::from_ref(api), context).await?;
            let (namespace, account) = (subject.namespace(), subject.account.as_ref());
            admission::admit_owner(namespace, account, &labels, api, context.scope).err()
        }
        _ => None,
    };
    Ok((place, api, refusal))
}

/// The labels of an ApiKey's namespace, if they decide anything at one of these.
async fn labels(
    subject: &Subject,
    apis: &[WaterDataApi],
    context: &Context,
) -> Result<admission::Labels, KeyError> {
    if !apis.iter().any(admission::needs_labels) {
        return Ok(admission::Labels::new());
    }
    let namespace = context.namespace(subject.namespace()).await?;
    Ok(namespace.metadata.labels.unwrap_or_default())
}
