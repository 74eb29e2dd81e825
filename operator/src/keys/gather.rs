//! Reads, once, all that a pass over an ApiKey decides by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::core::DeserializeGuard;
use tokio::time::Instant;
use water_domain::{KeyHash, PlanName, Timestamp};
use water_keystore::{Origin, Record, Writer};
use water_resources::api_key::IssuedAt;
use water_resources::condition::ConditionStatus;
use water_resources::{ApiKey, WaterDataApi};

use super::admission::Refusal;
use super::error::{KeyError, outcome};
use super::membership::membership;
use super::memory::MadeKey;
use super::record::{self, Issued};
use super::secret::{Found, Inspected, Written};
use super::seen::{Directory, Secret, Seen, Sight};
use super::subject::Subject;
use super::{finalizer, key_ids, plans};
use crate::client;
use crate::conditions::{Aspect, Outcome, Reason, find, holds};
use crate::context::Context;
use crate::directories::gates::GatePod;
use crate::directories::waits::{Mark, Standing};
use crate::directories::{DirectoryError, Moment, OpenDirectory};
use crate::gate_pods;

/// What a pass has read: [`Seen`] to decide by, the rest to carry the decision out.
pub struct Scene {
    /// The ApiKey.
    pub subject: Subject,
    /// The WaterDataApi that it belongs to, or would.
    pub place: Option<IssuedAt>,
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
    pub reading: Option<Reading>,
    /// Why the directory cannot be read.
    pub trouble: Option<Outcome>,
    /// Gates' pods that are left of a WaterDataApi that is gone.
    pub remaining: BTreeSet<String>,
    /// What to decide by.
    pub seen: Seen<KeyHash, PlanName>,
}

/// A directory, and what it holds of the ApiKey.
pub struct Reading {
    /// The directory.
    pub open: Arc<OpenDirectory>,
    /// Under the term that was claimed before it was read.
    pub writer: Writer,
    /// Whose records are read.
    pub origin: Origin,
    /// The records themselves.
    pub records: BTreeMap<KeyHash, Option<Record>>,
    /// Whether every gate has acknowledged them.
    pub standing: Standing,
    /// Redis' time.
    pub now: Timestamp,
}

/// Reads everything about one ApiKey, which the caller has found in the cache since `read`.
pub async fn gather(
    watched: &DeserializeGuard<ApiKey>,
    read: Moment,
    context: &Context,
    now: Timestamp,
) -> Result<Scene, KeyError> {
    let subject = Subject::of(watched, &context.memory, &context.client).await?;
    let membership = membership(&subject, context).await?;
    let rotation = subject.rotation();
    let is_wanted = |made: &Arc<MadeKey>| {
        rotation.is_none_or(|rotation| made.issued.revision >= rotation.revision)
    };
    let made = context.memory.made(subject.uid()).filter(is_wanted);
    let is_deleting = subject.meta.deletion_timestamp.is_some();
    let has_finalizer = finalizer::is_on(&subject.meta);
    let has_label = subject.key.as_ref().is_ok_and(finalizer::is_labelled);
    let is_prepared = has_finalizer && (is_deleting || has_label);
    let (admission, api) = (membership.admission, membership.api.as_ref());
    let secrets = &context.secrets;
    let secret = secrets.inspect(&subject, admission, api, made.as_deref(), is_prepared);
    let Inspected { found, seen } = secret.await?;
    let own = match &found {
        Found::Own(written) => Some(written),
        Found::Orphan(written) if !is_deleting => Some(written),
        _ => None,
    };
    let others = made.iter().map(|made| &made.issued);
    let others = others.chain(own.into_iter().flat_map(|own| own.keys()));
    let issued = subject.issued(others.cloned(), now);
    let is_generated = subject
        .spec()
        .is_some_and(|spec| spec.material.hash.is_none());
    let is_to_be_made =
        is_generated && is_prepared && !is_deleting && found == Found::Missing && made.is_none();
    let is_terminating =
        is_to_be_made && client::is_terminating(&context.client, subject.namespace()).await?;
    let wider_plans = api.zip(subject.spec());
    let wider_plans = wider_plans.map(|(api, spec)| plans::wider(api, &spec.plan));
    let mut scene = Scene {
        seen: Seen {
            is_deleting,
            has_finalizer,
            has_label,
            is_terminating,
            spec: subject.declared(),
            named: subject.revocable(&issued),
            status: subject.announcement(),
            admission,
            wider_plans: wider_plans.unwrap_or_default(),
            secret: seen,
            made: made.as_ref().map(|made| made.issued.hash),
            is_id_taken: match (&subject.key, &membership.place) {
                (Ok(key), Some(place)) => key_ids::is_taken(key, place, &context.keys),
                _ => false,
            },
            directory: Directory::Unnamed,
        },
        subject,
        place: membership.place,
        api: membership.api,
        refusal: membership.refusal,
        secret: found.written().cloned(),
        issued,
        made,
        reading: None,
        trouble: None,
        remaining: BTreeSet::new(),
    };
    if is_prepared || scene.seen.spec.is_none() {
        scene.seen.directory = scene.read(read, context).await?;
    }
    Ok(scene)
}

impl Scene {
    /// Reads what the directory holds of the ApiKey, of which everything else was read since that moment.
    async fn read(
        &mut self,
        since: Moment,
        context: &Context,
    ) -> Result<Directory<KeyHash, PlanName>, KeyError> {
        let Some(place) = &self.place else {
            return Ok(Directory::Unnamed);
        };
        let Some(open) = context.directories.get(place) else {
            let place = place.clone();
            return self.unopened(&place, context).await;
        };
        let origin = match (&self.subject.account, self.subject.brought) {
            (Some(account), Some(_)) => Origin::Brought(account.clone()),
            _ => Origin::Generated,
        };
        let asked: Vec<KeyHash> = self.seen.named.iter().copied().collect();
        let uid = self.subject.uid();
        let read = context
            .directories
            .sight(&open, context, since, uid, &origin, &asked);
        let (writer, sight, position) = match read.await {
            Ok(read) => read,
            Err(DirectoryError::ReadBefore) => return Err(KeyError::ReadBefore),
            Err(error) => {
                self.trouble = Some(outcome(&error));
                return Ok(Directory::Away);
            }
        };
        let mark = Mark {
            generation: position.generation,
            number: sight.number,
            is_last: sight.is_gone,
        };
        let is_nothing = sight.records.is_empty() && !sight.is_gone;
        let owner = record::owner(&self.subject.meta);
        let standing = match open.waits.standing(&owner.uid, mark) {
            Some(standing) => standing,
            None if is_nothing || self.is_told() => Standing::InForce,
            None => open.waits.begin(&owner, mark, position, Instant::now()),
        };
        if self.subject.key.is_err() {
            open.remember_unreadable(&owner, &origin, &sight.records);
        }
        let held = sight.records.iter();
        let held = held.map(|(hash, record)| {
            (
                *hash,
                record
                    .as_ref()
                    .filter(|record| self.fits(hash, record))
                    .map(record::terms),
            )
        });
        let seen = Sight {
            number: sight.number,
            held: held.collect(),
            barred: sight.barred,
            taken: sight.taken,
            is_gone: sight.is_gone,
            is_acknowledged: standing == Standing::InForce,
            now: sight.now,
        };
        self.reading = Some(Reading {
            open,
            writer,
            origin,
            records: sight.records,
            standing,
            now: sight.now,
        });
        Ok(Directory::Open(seen))
    }

    /// What a directory that is not open means.
    async fn unopened(
        &mut self,
        place: &IssuedAt,
        context: &Context,
    ) -> Result<Directory<KeyHash, PlanName>, KeyError> {
        let (namespace, name) = (&place.namespace, &place.name);
        let Some(api) = context.api_at(place) else {
            if self.seen.is_deleting {
                let pods = gate_pods::list(&context.client, place).await?;
                let pods = pods.iter().filter_map(GatePod::of);
                self.remaining = pods.map(|pod| pod.name).collect();
            }
            let gates = !self.remaining.is_empty();
            return Ok(Directory::Lost { gates });
        };
        let message = match &api.0 {
            Err(_) => "the WaterDataApi cannot be read".to_owned(),
            Ok(api) => {
                let status = api.status.as_ref();
                let conditions = status.map(|status| status.conditions.as_slice());
                match find(conditions.unwrap_or_default(), Aspect::DirectorySynced) {
                    Some(synced) if synced.status == ConditionStatus::False => {
                        synced.message.clone()
                    }
                    _ => return Err(KeyError::NotOpen),
                }
            }
        };
        let message = format!(
            "the key directory of the WaterDataApi {namespace}/{name} cannot be opened: {message}"
        );
        self.trouble = Some(Outcome::Underway(Reason::Waiting, message));
        Ok(Directory::Away)
    }

    /// Whether a record agrees with what is known of its key.
    fn fits(&self, hash: &KeyHash, record: &Record) -> bool {
        let issued = self.issued.get(hash);
        Some(&record.account) == self.subject.account.as_ref()
            && issued.is_none_or(|issued| {
                (&issued.key_id, issued.revision) == (&record.key_id, record.revision)
            })
    }

    /// Whether the status reports this generation as acknowledged by every gate. A new leader then need
    /// not ask the gates again.
    fn is_told(&self) -> bool {
        let status = &self.subject.status;
        let key = match (self.subject.brought, self.seen.secret) {
            (Some(hash), _) => hash,
            (None, Secret::Own(content)) => content.hash,
            (None, _) => return false,
        };
        !self.seen.is_deleting
            && status.observed_generation == self.subject.meta.generation
            && self.seen.status.current == Some(key)
            && self.seen.status.revealed.contains(&key)
            && self.seen.status.all == self.seen.status.revealed
            && holds(&status.conditions, Aspect::Synced)
            && find(&status.conditions, Aspect::Ready)
                .is_some_and(|ready| ready.reason != Reason::AwaitingGates.as_str())
    }
}
