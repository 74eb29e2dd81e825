//! Reads, once, all that a pass over an ApiKey decides by.

mod directory;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::core::DeserializeGuard;
use water_domain::{KeyHash, PlanName, Timestamp};
use water_operator_core::key::facts::{Admission, Directory, Facts, Secret};
use water_resources::api_key::ApiName;
use water_resources::{ApiKey, WaterDataApi};

use super::admission::{self, Labels, Membership, Refusal};
use super::error::KeyError;
use super::limit::Progress;
use super::memory::MadeKey;
use super::plans;
use super::record::{self, Issuance};
use super::secret::{SecretLookup, StoredSecret};
use super::subject::Subject;
use crate::caches::Installation;
use crate::client;
use crate::conditions::{Finding, Readiness};
use crate::context::Context;
use crate::directories::CacheEpoch;
pub use directory::DirectoryReading;

/// Results of a pass's reads: [`Facts`] to decide by, the rest to carry the decision out.
pub struct PassInput {
    pub subject: Subject,
    /// The WaterDataApi that it belongs to, or would.
    pub place: Option<ApiName>,
    /// The WaterDataApi, if it exists and can be decoded.
    pub api: Option<WaterDataApi>,
    /// Reason for which it is not admitted.
    pub refusal: Option<Refusal>,
    /// The ApiKey's Secret, or one to adopt.
    pub secret: Option<StoredSecret>,
    /// Every key of it that is known, by hash.
    pub issued: BTreeMap<KeyHash, Issuance>,
    /// The key that is made and not revealed.
    pub made: Option<Arc<MadeKey>>,
    /// The directory and what it holds; `None`: it cannot be read, or need not be.
    pub reading: Option<DirectoryReading>,
    /// Readiness that reports why the directory cannot be read.
    pub trouble: Option<Readiness>,
    /// Gates' pods that are left of a WaterDataApi that is gone.
    pub remaining: BTreeSet<String>,
    /// Error of a read that a restriction can do without.
    pub failure: Option<KeyError>,
    /// Reports a missing label of the account.
    pub unlabelled: Option<Finding>,
    /// Facts to decide by.
    pub facts: Facts<KeyHash, PlanName>,
}

impl PassInput {
    /// Whether the label of the account is to be written.
    pub fn lacks_label(&self) -> bool {
        !self.facts.is_deleting && self.facts.spec.is_some() && !self.subject.has_label
    }

    /// Progress that limited writes have made so far.
    pub fn progress(&self) -> Progress {
        Progress {
            generation: self.subject.meta.generation.unwrap_or_default(),
            current: self.facts.ledger.current,
        }
    }
}

/// Reads everything about one ApiKey, which the caller has found in the cache since `epoch`.
pub async fn gather(
    watched: &DeserializeGuard<ApiKey>,
    epoch: CacheEpoch,
    context: &Context,
    now: Timestamp,
) -> Result<PassInput, KeyError> {
    let subject = Subject::read(watched, &context.memory, &context.client).await?;
    let mut gathered = gather_around(subject, context, now).await?;
    if let Some(holder) = gathered.read_directory(epoch, context).await? {
        let subject = gathered.subject.held_by(holder);
        gathered = gather_around(subject, context, now).await?;
        gathered.read_directory(epoch, context).await?;
    }
    Ok(gathered)
}

/// Reads everything but the key directory.
async fn gather_around(
    subject: Subject,
    context: &Context,
    now: Timestamp,
) -> Result<PassInput, KeyError> {
    let apis = context.apis.state();
    let mut failure = None;
    let labels = labels(&subject, &apis, context).await;
    let labels = labels.unwrap_or_else(|error| {
        failure = Some(error);
        Labels::new()
    });
    let Membership {
        place,
        api,
        admission,
        refusal,
    } = admission::membership(&subject, &labels, &apis, context.scope);
    let is_deleting = subject.meta.deletion_timestamp.is_some();
    let rotation = subject.rotation();
    let is_wanted = |made: &Arc<MadeKey>| {
        rotation.is_none_or(|rotation| made.issued.revision >= rotation.revision)
    };
    let made = context.memory.made(subject.uid()).filter(is_wanted);
    let secrets = &context.secrets;
    let is_issued = subject.has_finalizer && admission == Admission::Admitted && failure.is_none();
    let inspected = if is_issued {
        secrets
            .inspect(&subject, api.as_ref(), made.as_deref())
            .await
    } else {
        Ok(secrets.inspect_known(&subject, api.as_ref()))
    };
    let (found, in_place) = inspected.unwrap_or_else(|error| {
        failure = Some(error.into());
        secrets.inspect_known(&subject, api.as_ref())
    });
    let material = subject.spec().map(|spec| &spec.material);
    let is_generated = material.is_some_and(|material| material.hash.is_none());
    let is_lost = matches!(
        in_place,
        Secret::Missing | Secret::Edited | Secret::Orphan { .. }
    );
    let is_to_be_made = is_issued && is_generated && is_lost && made.is_none();
    let mut is_terminating = false;
    if is_to_be_made && failure.is_none() {
        let looked_up = client::is_terminating(&context.client, subject.namespace()).await;
        is_terminating = looked_up.unwrap_or_else(|error| {
            failure = Some(error.into());
            false
        });
    }
    // Published keys stay, with every restriction.
    let (admission, refusal) = match failure {
        Some(_) => (Admission::Hindered, None),
        None => (admission, refusal),
    };
    let in_secret: Vec<&Issuance> = match &found {
        // Annotations that somebody else wrote could name another's hash, which would be revoked.
        SecretLookup::Own(written) if is_deleting => {
            secrets.written(&subject, written).into_iter().collect()
        }
        SecretLookup::Own(written) => written.keys().collect(),
        SecretLookup::Orphan(written) if !is_deleting => written.keys().collect(),
        _ => Vec::new(),
    };
    let others = made.iter().map(|made| &made.issued).chain(in_secret);
    let issued = subject.issued(others.cloned(), now);
    let wider_plans = api.as_ref().zip(subject.spec());
    let wider_plans = wider_plans.map(|(api, spec)| plans::wider(api, &spec.plan));
    let reissues = subject.status.reissues.iter();
    let mut gathered = PassInput {
        facts: Facts {
            is_deleting,
            has_finalizer: subject.has_finalizer,
            is_terminating,
            spec: subject.declared(),
            restrictions: subject.restrictions,
            named: subject.revocable(&issued),
            ledger: record::ledger(&subject.status),
            issue: subject.issue(&issued),
            reissues: reissues.map(|reissue| reissue.time).collect(),
            admission,
            wider_plans: wider_plans.unwrap_or_default(),
            secret: in_place,
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
        failure,
        unlabelled: None,
    };
    gathered.facts.is_id_taken = gathered.is_id_taken(&context.keys);
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
