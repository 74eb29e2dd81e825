//! One directory, from its opening to the end of the leadership.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tracing::info;
use water_domain::{KeyHash, KeyId, Plan, Timestamp};
use water_keystore::connection::Purpose;
use water_keystore::{
    ConnectionSettings, Directory, Entry, Instance, InvalidInstance, Observation, Origin, Owner,
    Record, StoreError, WriteError, Writer,
};
use water_resources::api_key::ApiName;

use super::CacheEpoch;
use super::pending::PendingDeclarations;

/// One directory, claimed or not.
pub struct OpenDirectory {
    /// The WaterDataApi that it belongs to.
    pub api: ApiName,
    pub(super) place: Location,
    pub(super) directory: Directory,
    /// `None` until claimed, and again after a write was refused.
    pub(super) writer: tokio::sync::Mutex<Option<Writer>>,
    /// What the gates have not acknowledged yet.
    pub pending: PendingDeclarations,
    known: Mutex<DirectoryState>,
    closed: Notify,
}

/// What this leadership knows of a directory.
#[derive(Default)]
struct DirectoryState {
    /// The latest term of which a command may still be under way.
    unanswered: u64,
    /// The term of the last claim after which the caches had caught up; 0 before.
    term: u64,
    /// When they caught up for the last time.
    caught_up: CacheEpoch,
    was_claimed: bool,
    /// The plans as last written: a Redis that was wiped knows them no more.
    plans: Vec<Plan>,
    /// Records of ApiKeys that cannot be decoded, by uid: the cluster does not say them.
    unreadable: HashMap<Box<str>, Vec<Entry>>,
    /// Last uses that statuses do not show yet.
    uses: HashMap<KeyId, Timestamp>,
    /// What the last look showed.
    observed: Option<Observation>,
    /// Damage that was seen and is not repaired yet.
    damage: Option<String>,
    /// Damage that was repaired and not reported yet.
    repaired: Option<String>,
    /// How many owners the last sweep would have removed, if that was too many.
    held_back: Option<usize>,
}

/// How a directory is reached, and its owner.
#[derive(Clone, Debug)]
pub struct Location {
    /// How Redis is reached.
    pub settings: ConnectionSettings,
    /// Changes when `settings` do.
    pub fingerprint: String,
    /// Tells this Redis from another one.
    pub store: String,
    /// The same of the Redis that the gates read, as their pods carry it; nothing if that cannot be known.
    pub gate_store: Option<String>,
    /// Whether another Redis may have been written since this one: what this one holds has missed changes.
    pub is_behind: bool,
    /// The uid of the WaterDataApi's namespace.
    pub owner: String,
    /// The uid of the WaterDataApi: another one of the same name begins anew.
    pub api: String,
    /// The uid of an owner that may be taken over.
    pub take_over: Option<String>,
}

impl Location {
    /// Whether the gates' URL names the same host, port and database as the operator's.
    pub(super) fn is_one_store(&self) -> bool {
        self.gate_store.as_ref() == Some(&self.store)
    }
}

impl OpenDirectory {
    pub(super) fn new(api: ApiName, place: Location) -> Result<Self, InvalidInstance> {
        let instance = Instance::new(&api.namespace, &api.name)?;
        let connection = place.settings.connect(Purpose::Directory);
        Ok(Self {
            directory: Directory::new(connection, instance),
            api,
            place,
            writer: tokio::sync::Mutex::default(),
            pending: PendingDeclarations::default(),
            known: Mutex::default(),
            closed: Notify::new(),
        })
    }

    fn known(&self) -> MutexGuard<'_, DirectoryState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tells its Redis from another one.
    pub fn store(&self) -> &str {
        &self.place.store
    }

    /// Whether it has missed changes, though it may look whole, and was not rebuilt since.
    pub(super) fn is_behind(&self) -> bool {
        self.place.is_behind && !self.was_claimed()
    }

    /// The directory, for questions.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// What the last look showed of it and of its server.
    pub fn observed(&self) -> Option<Observation> {
        self.known().observed.clone()
    }

    pub(super) fn observe(&self, seen: Observation) {
        self.known().observed = Some(seen);
    }

    /// Whether the caches had caught up with the cluster after this leadership's claim of that term.
    pub(super) fn has_caught_up_at(&self, term: u64) -> bool {
        self.known().term == term
    }

    pub(super) fn note_term(&self, term: u64) {
        self.known().term = term;
    }

    /// The epoch that the claim began: what was read of the cluster in an earlier one is too old.
    pub(super) fn caught_up(&self) -> CacheEpoch {
        self.known().caught_up
    }

    pub(super) fn note_caught_up(&self, at: CacheEpoch) {
        self.known().caught_up = at;
    }

    pub(super) fn note_claim(&self) {
        self.known().was_claimed = true;
    }

    /// Whether this leadership has ever claimed it: before, there is nothing of ours to look after.
    pub fn was_claimed(&self) -> bool {
        self.known().was_claimed
    }

    /// What the directory will have to be rebuilt for.
    pub(super) fn note_damage(&self, cause: impl ToString) {
        self.known().damage = Some(cause.to_string());
    }

    /// Whether it has to be rebuilt, though it may look whole.
    pub(super) fn is_damaged(&self) -> bool {
        self.known().damage.is_some()
    }

    pub(super) fn note_rebuild(&self) {
        let mut known = self.known();
        known.repaired = known.damage.take();
    }

    /// The damage that the latest rebuild repaired, if it was not taken before. The first rebuild of
    /// a leadership may repair none: it always happens.
    pub(super) fn take_rebuild(&self) -> Option<String> {
        self.known().repaired.take()
    }

    /// Of how many ApiKeys that are gone the last sweep has kept the keys, since they were too many.
    pub fn held_back(&self) -> Option<usize> {
        self.known().held_back
    }

    /// Returns what was so before.
    pub(super) fn note_held_back(&self, owners: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.known().held_back, owners)
    }

    /// Whether no earlier command of this writer can be carried out any more.
    pub(super) fn trusts(&self, writer: &Writer) -> bool {
        writer.term() > self.known().unanswered
    }

    /// Remembers what is held of an ApiKey that cannot be decoded. A Redis that was wiped knows it no
    /// more.
    pub fn remember_unreadable(
        &self,
        owner: &Owner,
        origin: &Origin,
        records: &BTreeMap<KeyHash, Option<Record>>,
    ) {
        let entries = records.iter().filter_map(|(hash, record)| {
            Some(Entry {
                hash: *hash,
                record: record.clone()?,
                owner: owner.clone(),
                origin: origin.clone(),
            })
        });
        let entries = entries.collect();
        self.known().unreadable.insert(owner.uid.clone(), entries);
    }

    /// The ApiKey can be decoded again, or is gone.
    pub fn forget_unreadable(&self, uid: &str) {
        self.known().unreadable.remove(uid);
    }

    /// Every record that the directory holds with its owner, and those remembered of ApiKeys that
    /// cannot be decoded.
    pub(super) async fn former(&self) -> Result<Vec<Entry>, StoreError> {
        let stored = self.directory.stored().await?;
        let stored = stored.into_iter().filter_map(|(hash, stored)| {
            Some(Entry {
                hash,
                record: stored.record?,
                owner: stored.owner?,
                // A tombstone that bars one account was left by its removal: it is not stored.
                origin: Origin::Generated,
            })
        });
        Ok(self.remembered().into_iter().chain(stored).collect())
    }

    /// The records remembered of ApiKeys that cannot be decoded.
    pub(super) fn remembered(&self) -> Vec<Entry> {
        self.known()
            .unreadable
            .values()
            .flatten()
            .cloned()
            .collect()
    }

    /// Takes over what the cluster does not say from the directory whose place it takes.
    pub(super) fn inherit(&self, before: &Self) {
        let (plans, unreadable) = {
            let before = before.known();
            (before.plans.clone(), before.unreadable.clone())
        };
        let mut known = self.known();
        known.plans = plans;
        known.unreadable = unreadable;
    }

    /// When a key was last used, if its status is to show that.
    pub fn last_use(&self, key: &KeyId) -> Option<Timestamp> {
        self.known().uses.get(key).copied()
    }

    pub(super) fn note_uses(&self, uses: HashMap<KeyId, Timestamp>) {
        self.known().uses = uses;
    }

    /// The plans that this leadership has written, and others that the directory has.
    pub(super) async fn known_plans(&self) -> Result<Vec<Plan>, StoreError> {
        let stored = self.directory.plans().await?;
        let mut plans = self.known().plans.clone();
        for plan in stored {
            if plans.iter().all(|known| known.name != plan.name) {
                plans.push(plan);
            }
        }
        Ok(plans)
    }

    pub(super) fn remember_plans(&self, plans: &[Plan]) {
        self.known().plans = plans.to_vec();
    }

    /// Another directory took its place.
    pub(super) fn close(&self) {
        self.closed.notify_one();
    }

    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    pub(super) fn is_at(&self, place: &Location) -> bool {
        self.place.fingerprint == place.fingerprint
            && self.place.gate_store == place.gate_store
            && (&self.place.owner, &self.place.api) == (&place.owner, &place.api)
            && self.place.take_over == place.take_over
    }
}

/// A write under way. Unless it is answered, by a refusal or otherwise, it may be carried out later:
/// its term is given up, and the next claim's refuses it.
pub(super) struct UnansweredWrite<'a> {
    open: &'a OpenDirectory,
    term: u64,
    is_answered: bool,
}

impl<'a> UnansweredWrite<'a> {
    pub(super) fn of(open: &'a OpenDirectory, writer: &Writer) -> Self {
        Self {
            open,
            term: writer.term(),
            is_answered: false,
        }
    }

    /// The call has returned.
    pub(super) fn answered_by<T>(
        mut self,
        outcome: Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        match &outcome {
            Err(WriteError::Store(_) | WriteError::Fenced { .. }) => {}
            Err(
                refusal @ (WriteError::Wiped | WriteError::Unverified | WriteError::Interrupted),
            ) => {
                info!(error = %refusal, "claiming the key directory again");
                self.open.note_damage(refusal);
            }
            _ => self.is_answered = true,
        }
        outcome
    }
}

impl Drop for UnansweredWrite<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let mut known = self.open.known();
            known.unanswered = known.unanswered.max(self.term);
        }
    }
}
