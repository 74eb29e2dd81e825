//! Reads, once, all that a pass over an ApiKey decides by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::core::DeserializeGuard;
use tokio::time::Instant;
use water_domain::{KeyHash, PlanName, Timestamp};
use water_keystore::{Origin, Record, Writer};

use super::admission::Refusal;
use super::contents::{covers, plans};
use super::error::{KeyError, outcome};
use super::finalizer;
use super::membership::{Membership, membership};
use super::memory::MadeKey;
use super::record::{self, Issued};
use super::secret::{self, Found};
use super::seen::{Admission, Announced, Directory, Material, Secret, Seen, Sight, Spec};
use super::subject::Subject;
use crate::conditions::{Aspect, Outcome, Reason, find, holds};
use crate::context::Context;
use crate::crd::api_key::IssuedAt;
use crate::crd::condition::ConditionStatus;
use crate::crd::{ApiKey, WaterDataApi};
use crate::directories::OpenDirectory;
use crate::directories::acknowledgements::gate_pods;
use crate::directories::waits::{Mark, Standing};

/// What a pass has read: [`Seen`] to decide by, the rest to carry the decision out.
pub struct Scene {
    /// The ApiKey.
    pub subject: Subject,
    /// The WaterDataApi that it is, or is to be, one of.
    pub place: Option<IssuedAt>,
    /// The same, if it exists and can be decoded.
    pub api: Option<WaterDataApi>,
    /// Why it is not admitted.
    pub refusal: Option<Refusal>,
    /// Its own Secret's version.
    pub secret_version: Option<String>,
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

/// Reads everything about one ApiKey.
pub async fn gather(
    watched: &DeserializeGuard<ApiKey>,
    context: &Context,
    now: Timestamp,
) -> Result<Scene, KeyError> {
    let subject = Subject::of(watched, context).await?;
    let membership = membership(&subject, context).await?;
    let made = context.memory.made(subject.uid());
    let found = secret(&subject, &membership, made.as_deref(), context).await?;
    let issued = issued(&subject, &found, made.as_deref(), now);
    let is_deleting = subject.meta.deletion_timestamp.is_some();
    let is_generated = subject
        .spec()
        .is_some_and(|spec| spec.material.hash.is_none());
    let is_to_be_made = is_generated && !is_deleting && found == Found::Missing && made.is_none();
    let is_terminating = is_to_be_made && context.is_terminating(subject.namespace()).await?;
    let mut scene = Scene {
        seen: Seen {
            is_deleting,
            has_finalizer: finalizer::is_on(&subject.meta),
            has_label: subject.key.as_ref().is_ok_and(finalizer::is_labelled),
            is_terminating,
            spec: spec(&subject),
            named: named(&subject, &issued),
            status: status(&subject),
            admission: membership.admission,
            wider_plans: wider_plans(&subject, membership.api.as_ref()),
            secret: match &found {
                Found::Missing => Secret::Missing,
                Found::Foreign => Secret::Foreign,
                Found::Own { issued, .. } => Secret::Own(issued.hash),
            },
            made: made.as_ref().map(|made| made.issued.hash),
            directory: Directory::Unnamed,
        },
        subject,
        place: membership.place,
        api: membership.api,
        refusal: membership.refusal,
        secret_version: match found {
            Found::Own { version, .. } => version,
            Found::Missing | Found::Foreign => None,
        },
        issued,
        made,
        reading: None,
        trouble: None,
        remaining: BTreeSet::new(),
    };
    let is_prepared = scene.seen.has_finalizer && (is_deleting || scene.seen.has_label);
    if is_prepared || scene.seen.spec.is_none() {
        scene.seen.directory = scene.read(context).await?;
    }
    Ok(scene)
}

/// Looks for the Secret in the watch's memory and, before a key is made or after its name was
/// taken, at the API server.
async fn secret(
    subject: &Subject,
    membership: &Membership,
    made: Option<&MadeKey>,
    context: &Context,
) -> kube::Result<Found> {
    let Some(name) = subject.secret_name() else {
        return Ok(Found::Missing);
    };
    let (uid, namespace) = (subject.uid(), subject.namespace());
    let found = secret::known(uid, &name, namespace, context);
    let is_to_be_asked =
        membership.admission == Admission::Admitted && made.is_none_or(|made| made.is_name_taken);
    if found != Found::Missing || !is_to_be_asked {
        return Ok(found);
    }
    secret::ask(uid, &name, namespace, context).await
}

/// Every key that spec, status, Secret and memory name.
fn issued(
    subject: &Subject,
    found: &Found,
    made: Option<&MadeKey>,
    now: Timestamp,
) -> BTreeMap<KeyHash, Issued> {
    let announced = subject.announced();
    let next = announced.first().map_or(0, |current| current.revision + 1);
    let brought = subject.brought.map(|hash| Issued {
        hash,
        key_id: hash.key_id(),
        revision: next,
        time: now,
    });
    let in_secret = match found {
        Found::Own { issued, .. } => Some(issued.clone()),
        Found::Missing | Found::Foreign => None,
    };
    let made = made.map(|made| made.issued.clone());
    // Of two that say something of one key the last counts.
    let all = brought.into_iter().chain(made).chain(in_secret);
    let all = all.chain(announced.into_iter().rev());
    all.map(|issued| (issued.hash, issued)).collect()
}

fn spec(subject: &Subject) -> Option<Spec<KeyHash, PlanName>> {
    let key = subject.key.as_ref().ok()?;
    let material = match (&key.spec.material.hash, subject.brought) {
        (None, _) => Material::Generated,
        (Some(_), brought) => Material::Brought(brought?),
    };
    Some(Spec {
        terms: record::declared(&key.spec),
        material,
        reinstate: subject.reinstated(),
    })
}

/// What a deletion revokes: not a brought hash whose account cannot be read, since its tombstone
/// would bar everyone.
fn named(subject: &Subject, issued: &BTreeMap<KeyHash, Issued>) -> BTreeSet<KeyHash> {
    let unknown = subject.brought.filter(|_| subject.account.is_none());
    let hashes = issued.keys().copied();
    hashes.filter(|hash| Some(*hash) != unknown).collect()
}

fn status(subject: &Subject) -> Announced<KeyHash> {
    let announced = subject.announced();
    let shown = subject.status.key_id.as_deref();
    let current = subject.status.current.as_ref().and_then(Issued::read);
    let previous = subject.status.previous.as_ref().map(record::issued_before);
    let previous = previous.as_ref().and_then(Issued::read);
    let revealed = current
        .iter()
        .filter(|current| Some(current.key_id.as_str()) == shown);
    Announced {
        all: announced.iter().map(|issued| issued.hash).collect(),
        revealed: revealed
            .chain(&previous)
            .map(|issued| issued.hash)
            .collect(),
        current: current.map(|current| current.hash),
    }
}

fn wider_plans(subject: &Subject, api: Option<&WaterDataApi>) -> BTreeSet<PlanName> {
    let plans = api.map(plans).unwrap_or_default();
    let declared = subject.spec().map(|spec| &spec.plan);
    let Some(declared) = plans.iter().find(|plan| Some(&plan.name) == declared) else {
        return BTreeSet::new();
    };
    let wider = plans.iter().filter(|plan| covers(plan, declared));
    wider.map(|plan| plan.name.clone()).collect()
}

impl Scene {
    /// Reads what the directory holds of the ApiKey.
    async fn read(&mut self, context: &Context) -> Result<Directory<KeyHash, PlanName>, KeyError> {
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
            .sight(&open, context, uid, &origin, &asked);
        let (writer, sight, position) = match read.await {
            Ok(read) => read,
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
                let pods = gate_pods(&context.api::<Pod>(namespace), name).await?;
                self.remaining = pods.into_iter().map(|pod| pod.name).collect();
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

    /// Whether a record says of its key what is known of it.
    fn fits(&self, hash: &KeyHash, record: &Record) -> bool {
        let issued = self.issued.get(hash);
        Some(&record.account) == self.subject.account.as_ref()
            && issued.is_none_or(|issued| {
                (&issued.key_id, issued.revision) == (&record.key_id, record.revision)
            })
    }

    /// Whether the status already says of this generation that its key is in force at every gate:
    /// after a change of leader nobody need ask the gates again.
    fn is_told(&self) -> bool {
        let status = &self.subject.status;
        let key = match (self.subject.brought, self.seen.secret) {
            (Some(hash), _) | (None, Secret::Own(hash)) => hash,
            (None, Secret::Missing | Secret::Foreign) => return false,
        };
        !self.seen.is_deleting
            && status.observed_generation == self.subject.meta.generation
            && self.seen.status.current == Some(key)
            && self.seen.status.revealed == BTreeSet::from([key])
            && self.seen.status.all.len() == 1
            && holds(&status.conditions, Aspect::Synced)
            && find(&status.conditions, Aspect::Ready)
                .is_some_and(|ready| ready.reason != Reason::AwaitingGates.as_str())
    }
}
