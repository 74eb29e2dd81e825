//! What the key directory holds of an ApiKey, and what it means that it cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::Store;
use tokio::time::Instant;
use water_domain::{KeyHash, PlanName, Timestamp};
use water_keystore::{Origin, Record, Writer};
use water_resources::api_key::ApiName;
use water_resources::condition::ConditionStatus;

use super::Gathered;
use crate::caches::Key;
use crate::conditions::{Aspect, Readiness, Reason, find, holds};
use crate::context::Context;
use crate::directories::gates::GatePod;
use crate::directories::pending::{DeclarationId, DeclarationState};
use crate::directories::{CacheEpoch, DirectoryError, OpenDirectory};
use crate::gate_pods;
use crate::installation::render::Part;
use crate::keys::error::{KeyError, outcome};
use crate::keys::seen::{Admission, Directory, DirectoryContent, Secret};
use crate::keys::{key_ids, record};

/// A directory, and what it holds of the ApiKey.
pub struct DirectoryReading {
    pub open: Arc<OpenDirectory>,
    /// Under the term that was claimed before it was read.
    pub writer: Writer,
    /// Whose records are read.
    pub origin: Origin,
    pub records: BTreeMap<KeyHash, Option<Record>>,
    /// Whether every gate has acknowledged them.
    pub state: DeclarationState,
    /// Redis' time.
    pub now: Timestamp,
}

impl Gathered {
    /// Whether another ApiKey of the WaterDataApi has the key id that this one declares.
    pub(super) fn is_id_taken(&self, keys: &Store<Key>) -> bool {
        match (&self.subject.key, &self.place) {
            (Ok(key), Some(place)) => key_ids::is_taken(key, place, keys),
            _ => false,
        }
    }

    /// Reads what the directory holds of the ApiKey, of which everything else was read since `epoch`.
    pub(super) async fn read(
        &mut self,
        epoch: CacheEpoch,
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
            .owner_snapshot(&open, context, epoch, uid, &origin, &asked);
        let (writer, snapshot, position) = match read.await {
            Ok(read) => read,
            Err(error @ DirectoryError::ReadBefore) => return Err(error.into()),
            Err(error) => {
                self.trouble = Some(outcome(&error));
                return Ok(Directory::Away);
            }
        };
        let id = DeclarationId {
            generation: position.generation,
            number: snapshot.number,
            is_last: snapshot.is_gone,
        };
        let is_nothing = snapshot.records.is_empty() && !snapshot.is_gone;
        let owner = record::owner(&self.subject.meta);
        let state = match open.pending.state(&owner.uid, id) {
            Some(state) => state,
            None if is_nothing || self.is_told() => DeclarationState::InForce,
            None => open.pending.begin(&owner, id, position, Instant::now()),
        };
        let is_hindered =
            self.seen.admission == Admission::Hindered || self.seen.secret == Secret::Foreign;
        match self.subject.key {
            Ok(_) if !is_hindered => open.forget(uid),
            _ => open.remember(&owner, &origin, &snapshot.records),
        }
        let held = snapshot.records.iter();
        let held = held.map(|(hash, record)| {
            (
                *hash,
                record
                    .as_ref()
                    .filter(|record| self.fits(hash, record))
                    .map(record::rules),
            )
        });
        let seen = DirectoryContent {
            number: snapshot.number,
            held: held.collect(),
            barred: snapshot.barred,
            taken: snapshot.taken,
            is_gone: snapshot.is_gone,
            is_acknowledged: state == DeclarationState::InForce,
            now: snapshot.now,
        };
        self.reading = Some(DirectoryReading {
            open,
            writer,
            origin,
            records: snapshot.records,
            state,
            now: snapshot.now,
        });
        Ok(Directory::Open(seen))
    }

    /// What a directory that is not open means.
    async fn unopened(
        &mut self,
        place: &ApiName,
        context: &Context,
    ) -> Result<Directory<KeyHash, PlanName>, KeyError> {
        let (namespace, name) = (&place.namespace, &place.name);
        let Some(api) = context.api_at(place) else {
            if self.seen.is_deleting {
                self.remaining = names(&context.gate_pods.of(place));
                // The watch may lag, or not cover this namespace: only the API server's word lets a key go.
                if self.remaining.is_empty() {
                    let pods = gate_pods::list(&context.client, place, Part::Gate).await?;
                    self.remaining = names(&pods);
                }
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
        self.trouble = Some(Readiness::Underway(Reason::Waiting, message));
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

/// The gates' pods that have not ended.
fn names(pods: &[Pod]) -> BTreeSet<String> {
    let pods = pods.iter().filter_map(|pod| GatePod::of(pod, None));
    pods.map(|pod| pod.name).collect()
}
