//! One directory, from its opening to the end of the leadership.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;
use tracing::info;
use water_domain::{KeyHash, KeyId, Plan, Timestamp};
use water_keystore::connection::Purpose;
use water_keystore::{
    ConnectionSettings, Directory, Entry, Instance, InvalidInstance, Observation, Origin, Owner,
    Position, Record, StoreError, WriteError, Writer,
};
use water_resources::api_key::ApiName;

use super::CacheEpoch;
use super::pending::PendingDeclarations;
use crate::lock::lock;

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
    /// Told when another directory takes its place, or nothing refers to it any more.
    pub(super) closed: Notify,
}

/// What this leadership knows of a directory.
#[derive(Default)]
pub(super) struct DirectoryState {
    /// The latest term of which a command may still be under way.
    pub(super) unanswered: u64,
    /// The term of the last claim after which the caches had caught up; 0 before.
    pub(super) term: u64,
    /// The epoch in which they caught up for the last time: what was read of the cluster in an earlier one
    /// is too old.
    pub(super) caught_up: CacheEpoch,
    /// Whether this leadership has ever claimed it: before, there is nothing of ours to look after.
    pub(super) was_claimed: bool,
    /// The plans as last written: a Redis that was wiped knows them no more.
    pub(super) plans: Vec<Plan>,
    /// Records that a rebuild carries over, by uid: of ApiKeys that cannot be decoded, or are hindered, the
    /// cluster does not say everything.
    carried: HashMap<Box<str>, Vec<Entry>>,
    /// Last uses that statuses do not show yet.
    pub(super) uses: HashMap<KeyId, Timestamp>,
    /// What the last look showed.
    pub(super) observed: Option<Observation>,
    /// The latest position that a look or an answer to a write has shown since the last rebuild.
    pub(super) reached: Position,
    /// Damage that was seen and is not repaired yet: a rebuild is due, though the directory may look whole.
    pub(super) damage: Option<String>,
    /// Damage that the latest rebuild has repaired, and that was not reported yet.
    pub(super) repaired: Option<String>,
    /// How many owners the last sweep would have removed, if that was too many.
    pub(super) held_back: Option<usize>,
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

    pub(super) fn known(&self) -> MutexGuard<'_, DirectoryState> {
        lock(&self.known)
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

    /// The directory has come to this position: one that shows an earlier one went back.
    pub(super) fn has_reached(&self, position: Position) {
        let mut known = self.known();
        known.reached = known.reached.max(position);
    }

    /// The writer, whose changes are refused where the directory went back since it was last seen.
    pub(super) fn fenced(&self, writer: &Writer) -> Writer {
        writer.clone().after(self.known().reached)
    }

    /// A rebuild is due. Its first cause is told once it is over.
    pub(super) fn note_damage(&self, cause: impl ToString) {
        let mut known = self.known();
        known.damage.get_or_insert_with(|| cause.to_string());
    }

    /// No command under this term or an earlier one is relied on any more.
    pub(super) fn give_up(&self, term: u64) {
        let mut known = self.known();
        known.unanswered = known.unanswered.max(term);
    }

    /// Whether this leadership has ever claimed it: before, there is nothing of ours to look after.
    pub fn was_claimed(&self) -> bool {
        self.known().was_claimed
    }

    /// Of how many ApiKeys that are gone the last sweep has kept the keys, since they were too many.
    pub fn held_back(&self) -> Option<usize> {
        self.known().held_back
    }

    /// Remembers what is held of an ApiKey of which the cluster does not say all. A Redis that was wiped
    /// knows it no more.
    pub fn remember(
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
        self.known().carried.insert(owner.uid.clone(), entries);
    }

    /// The cluster says all of the ApiKey again, or it is gone.
    pub fn forget(&self, uid: &str) {
        self.known().carried.remove(uid);
    }

    /// Every record that the directory holds with its owner.
    pub(super) async fn stored(&self) -> Result<Vec<Entry>, StoreError> {
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
        Ok(stored.collect())
    }

    /// The same for a rebuild: what is remembered of an ApiKey takes the place of what is stored of it, for
    /// Redis may have gone back since.
    pub(super) async fn former(&self) -> Result<Vec<Entry>, StoreError> {
        let mut former = self.stored().await?;
        let known = self.known();
        former.retain(|entry| !known.carried.contains_key(&entry.owner.uid));
        former.extend(known.carried.values().flatten().cloned());
        Ok(former)
    }

    /// The records that are remembered.
    pub(super) fn remembered(&self) -> Vec<Entry> {
        self.known().carried.values().flatten().cloned().collect()
    }

    /// Takes over what the cluster does not say from the directory whose place it takes.
    pub(super) fn inherit(&self, before: &Self) {
        let is_same_store = self.store() == before.store();
        let (before, mut known) = (before.known(), self.known());
        known.plans.clone_from(&before.plans);
        known.carried.clone_from(&before.carried);
        if is_same_store {
            known.reached = before.reached;
            known.damage.clone_from(&before.damage);
        }
    }

    /// When a key was last used, if its status is to show that.
    pub fn last_use(&self, key: &KeyId) -> Option<Timestamp> {
        self.known().uses.get(key).copied()
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
                refusal @ (WriteError::Wiped
                | WriteError::Unverified
                | WriteError::WentBack
                | WriteError::Interrupted),
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
            self.open.give_up(self.term);
        }
    }
}
