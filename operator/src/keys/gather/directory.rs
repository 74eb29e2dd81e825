//! Reads the key directory's records of an ApiKey, and concludes from a directory that cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::api::ObjectMeta;
use kube::runtime::reflector::Store;
use tokio::time::Instant;
use water_domain::{KeyHash, PlanName, Timestamp};
use water_keystore::{Origin, Record, Writer};
use water_operator_core::key::facts::{Admission, Directory, DirectoryContent, Secret};
use water_resources::ApiKey;
use water_resources::api_key::ApiName;
use water_resources::condition::ConditionStatus;

use super::PassInput;
use crate::caches::{Key, is_done};
use crate::conditions::{ConditionType, Readiness, Reason, find, holds};
use crate::context::Context;
use crate::directories::gates::GatePod;
use crate::directories::pending::{DeclarationId, DeclarationState};
use crate::directories::{CacheEpoch, DirectoryError, OpenDirectory, REPORTED_AFTER, SearchResult};
use crate::gate_pods;
use crate::keys::error::{KeyError, outcome};
use crate::keys::{admission, key_ids, record};

/// Silence after which a Redis counts as gone with its WaterDataApi. One that restarts or fails over is back by
/// then.
const LOST_AFTER: Duration = Duration::from_secs(20);

/// A directory, and what it holds of the ApiKey.
pub struct DirectoryReading {
    pub open: Arc<OpenDirectory>,
    /// Writer under the term that was claimed before the directory was read.
    pub writer: Writer,
    /// Origin of the keys whose records are read.
    pub origin: Origin,
    pub records: BTreeMap<KeyHash, Option<Record>>,
    /// State of the last declaration: in force, or awaiting gates.
    pub state: DeclarationState,
    /// Redis' time.
    pub now: Timestamp,
}

impl PassInput {
    /// Whether another ApiKey of the WaterDataApi has the key id that this one declares.
    pub(super) fn is_id_taken(&self, keys: &Store<Key>) -> bool {
        match (&self.subject.key, &self.place) {
            (Ok(key), Some(place)) => key_ids::is_taken(key, place, keys),
            _ => false,
        }
    }

    /// Reads what the directory holds of the ApiKey, of which everything else was read since `epoch`. Returns another
    /// WaterDataApi if spec and status do not name the one whose directory holds the keys: others may write a status,
    /// and a spec may follow it. Where none holds any, the spec counts. That directory is read in a second pass, whose
    /// report puts the name back.
    pub(super) async fn read_directory(
        &mut self,
        epoch: CacheEpoch,
        context: &Context,
    ) -> Result<Option<ApiName>, KeyError> {
        // Without it nothing is published but by mistake: somebody has removed it.
        let may_be_published = self.subject.has_finalizer || self.subject.status.api.is_some();
        if !may_be_published && self.facts.spec.is_some() {
            return Ok(None);
        }
        let read = self.read(epoch, context).await;
        if self.is_settled(&read) || self.subject.is_found || is_witness(&read) {
            self.facts.directory = read?;
            return Ok(None);
        }
        let besides = self.place.as_ref();
        let found = context.directories.search(self.subject.uid(), besides);
        let (without, silent) = match found.await {
            SearchResult::Holder(holder) => return Ok(Some(holder)),
            SearchResult::NotFound { without, silent } => (without, silent),
        };
        if self.is_to_wait_for_others(&read)
            && let Some((place, error)) = self.likely_holder(&without, silent, context).await?
        {
            self.trouble = Some(self.unread(&place, &error));
            self.facts.directory = Directory::Away;
            return Ok(None);
        }
        if let Ok(Directory::Open(_) | Directory::Lost { gates: false }) = read
            && let Some(named) = self.named_elsewhere()
        {
            return Ok(Some(named));
        }
        self.facts.directory = read?;
        Ok(None)
    }

    /// Returns the WaterDataApi that the spec names, if that is another one than the status names.
    fn named_elsewhere(&self) -> Option<ApiName> {
        let spec = self.subject.spec().filter(|_| self.subject.is_disputed())?;
        let named = spec.api_ref.as_ref()?.place(self.subject.namespace());
        (Some(&named) != self.place.as_ref()).then_some(named)
    }

    /// Returns a WaterDataApi, but those whose directories are `without` keys of the ApiKey, whose directory may hold some
    /// and whose gates may accept them.
    async fn likely_holder(
        &self,
        without: &BTreeSet<ApiName>,
        mut silent: BTreeMap<ApiName, DirectoryError>,
        context: &Context,
    ) -> Result<Option<(ApiName, DirectoryError)>, KeyError> {
        let unread = context.apis.state().into_iter().filter_map(|api| {
            let place = api_name(api.meta())?;
            let is_read = Some(&place) == self.place.as_ref() || without.contains(&place);
            let is_ours = context.api_namespaces.contains(&place.namespace);
            (is_ours && !is_read).then_some((place, api))
        });
        let unread: Vec<_> = unread.collect();
        // Nothing is asked for thousands of ApiKeys whose WaterDataApi is gone.
        if unread.is_empty() {
            return Ok(None);
        }
        let namespace = self.subject.namespace();
        // Without labels, any that selects namespaces may have admitted this one.
        let labels = context.namespace(namespace).await.ok();
        let labels = labels.map(|namespace| namespace.metadata.labels.unwrap_or_default());
        for (place, api) in unread {
            let may_hold = self.subject.status.api.as_ref() == Some(&place)
                || admission::may_hold(&api, namespace, labels.as_ref(), context.scope);
            if may_hold && !gates_of(&place, context).await?.is_empty() {
                let error = silent.remove(&place).unwrap_or(DirectoryError::NotOpen);
                return Ok(Some((place, error)));
            }
        }
        Ok(None)
    }

    /// Whether the spec names the WaterDataApi for good. The schema lets nobody change that name, but somebody may have
    /// added it after a status that lied: the other directories are asked all the same if the ApiKey had a key that
    /// this one does not hold, before the ApiKey goes, and while the status names another one.
    fn is_settled(&self, read: &Result<Directory<KeyHash, PlanName>, KeyError>) -> bool {
        let has_answered = matches!(read, Ok(Directory::Lost { .. } | Directory::Open(_)));
        let is_sought = self.facts.is_deleting || self.had_a_key();
        self.is_named_by_spec() && !self.subject.is_disputed() && !(is_sought && has_answered)
    }

    /// Whether the WaterDataApi is the one that the spec names.
    fn is_named_by_spec(&self) -> bool {
        let named = self.subject.spec().and_then(|spec| spec.api_ref.as_ref());
        let named = named.map(|named| named.place(self.subject.namespace()));
        named.is_some() && named == self.place
    }

    /// Reports that the directory of this WaterDataApi, which may hold keys of the ApiKey, cannot be read.
    fn unread(&self, place: &ApiName, error: &DirectoryError) -> Readiness {
        let ApiName { namespace, name } = place;
        let field = if self.is_named_by_spec() {
            "spec.apiRef"
        } else {
            "status.api"
        };
        let message = format!(
            "{field} names no WaterDataApi that holds keys of this ApiKey, and the key directory of the WaterDataApi \
             {namespace}/{name}, which may, cannot be read: {error}"
        );
        Readiness::Underway(error.reason(), message)
    }

    /// Whether its status or its Secret shows that it had a key.
    fn had_a_key(&self) -> bool {
        self.facts.ledger.has_revealed() || matches!(self.facts.secret, Secret::Own(_))
    }

    /// Whether nothing may be decided while a directory that may hold keys of the ApiKey does not answer: it had a key,
    /// and would be let go, published for a second time, or seen again only a minute later.
    fn is_to_wait_for_others(&self, read: &Result<Directory<KeyHash, PlanName>, KeyError>) -> bool {
        let is_answered = matches!(
            read,
            Ok(Directory::Lost { .. } | Directory::Unnamed | Directory::Open(_))
        );
        is_answered && self.had_a_key()
    }

    /// Reads what the directory that the status names holds of the ApiKey.
    async fn read(
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
        let asked: Vec<KeyHash> = self.facts.named.iter().copied().collect();
        let uid = self.subject.uid();
        let read = context
            .directories
            .owner_snapshot(&open, epoch, uid, &origin, &asked);
        let (writer, snapshot, position) = match read.await {
            Ok(read) => read,
            Err(error) if error.is_delay() && !self.is_delay_reported(&open) => {
                return Err(error.into());
            }
            // Its Redis has gone with it: then the gates decide, as for an operator that never knew it.
            Err(DirectoryError::Away(_))
                if self.facts.is_deleting
                    && context.api_at(place).is_none()
                    && open.is_away_for(LOST_AFTER) =>
            {
                let place = place.clone();
                return self.unopened(&place, context).await;
            }
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
            self.facts.admission == Admission::Hindered || self.facts.secret == Secret::Foreign;
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
        let content = DirectoryContent {
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
        Ok(Directory::Open(content))
    }

    /// Whether the status shows that a claim is under way: of one that takes long, where something waits for it.
    fn is_delay_reported(&self, open: &OpenDirectory) -> bool {
        let is_done = self.subject.key.as_ref().is_ok_and(is_done);
        is_to_be_reported(open.claiming(), is_done)
    }

    /// Concludes from a directory that is not open.
    async fn unopened(
        &mut self,
        place: &ApiName,
        context: &Context,
    ) -> Result<Directory<KeyHash, PlanName>, KeyError> {
        let (namespace, name) = (&place.namespace, &place.name);
        let Some(api) = context.api_at(place) else {
            if self.facts.is_deleting {
                self.remaining = gates_of(place, context).await?;
            }
            let gates = !self.remaining.is_empty();
            return Ok(Directory::Lost { gates });
        };
        let message = match &api.0 {
            Err(_) => "the WaterDataApi cannot be read".to_owned(),
            Ok(api) => {
                let status = api.status.as_ref();
                let conditions = status.map(|status| status.conditions.as_slice());
                match find(
                    conditions.unwrap_or_default(),
                    ConditionType::DirectorySynced,
                ) {
                    Some(synced) if synced.status == ConditionStatus::False => {
                        synced.message.clone()
                    }
                    _ if context.api_namespaces.contains(namespace) => {
                        return Err(KeyError::NotOpen);
                    }
                    _ => return Err(KeyError::Elsewhere),
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
        let conditions = &self.subject.status.conditions;
        self.is_reported()
            && self.facts.ledger.is_settled()
            && holds(conditions, ConditionType::Synced)
            && find(conditions, ConditionType::Ready)
                .is_some_and(|ready| ready.reason != Reason::AwaitingGates.as_str())
    }

    /// Whether the status reports this generation, and the key in it as revealed and current.
    fn is_reported(&self) -> bool {
        let key = match (self.subject.brought, self.facts.secret) {
            (Some(hash), _) => hash,
            (None, Secret::Own(content)) => content.hash,
            (None, _) => return false,
        };
        !self.facts.is_deleting
            && self.subject.status.observed_generation == self.subject.meta.generation
            && self.facts.ledger.shown() == Some(key)
    }

    /// Whether gates serve the key of this generation as declared, by its status: Redis need not be asked.
    pub fn is_served(&self, now: Timestamp) -> bool {
        let is_in_time = |key: &ApiKey| key.spec.expiration_time.is_none_or(|end| now < end);
        let ready = find(&self.subject.status.conditions, ConditionType::Ready);
        self.is_reported()
            && self.refusal.is_none()
            && self.subject.key.as_ref().is_ok_and(is_in_time)
            && ready.is_some_and(|ready| ready.status != ConditionStatus::False)
    }
}

/// Whether a claim that has been under way for so long is reported of an ApiKey.
fn is_to_be_reported(claiming: Option<Duration>, is_done: bool) -> bool {
    !is_done && claiming.is_some_and(|long| long >= REPORTED_AFTER)
}

/// Whether the answer of the named directory stands by itself. One that holds nothing of the ApiKey, does not answer or
/// does not exist proves nothing: others may write the status that names it.
fn is_witness(read: &Result<Directory<KeyHash, PlanName>, KeyError>) -> bool {
    match read {
        Ok(Directory::Open(content)) => {
            content.number > 0 || content.is_gone || !content.held.is_empty()
        }
        Ok(Directory::Unnamed | Directory::Away | Directory::Lost { .. })
        | Err(KeyError::Elsewhere) => false,
        Err(_) => true,
    }
}

fn api_name(meta: &ObjectMeta) -> Option<ApiName> {
    Some(ApiName {
        namespace: meta.namespace.clone()?,
        name: meta.name.clone()?,
    })
}

/// Pods of a WaterDataApi's gates. The watch may lag, or not cover its namespace: only the API server's answer, while
/// it may be asked, shows that there is none.
async fn gates_of(place: &ApiName, context: &Context) -> kube::Result<BTreeSet<String>> {
    let watched = names(&context.gate_pods.for_api(place));
    if !watched.is_empty() {
        return Ok(watched);
    }
    let pods = gate_pods::list_gates(&context.client, place).await?;
    Ok(names(&pods.unwrap_or_default()))
}

/// The gates' pods that have not ended.
fn names(pods: &[Pod]) -> BTreeSet<String> {
    let pods = pods.iter().filter_map(|pod| GatePod::read(pod, None));
    pods.map(|pod| pod.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_claim_is_reported_of_an_apikey_that_waits_for_it() {
        let short = REPORTED_AFTER - Duration::from_millis(1);
        assert!(is_to_be_reported(Some(REPORTED_AFTER), false));
        assert!(!is_to_be_reported(Some(REPORTED_AFTER), true));
        assert!(!is_to_be_reported(Some(short), false) && !is_to_be_reported(None, false));
    }
}
