//! State of one directory, from its opening to the end of the leadership.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tracing::info;
use water_domain::{KeyHash, KeyId, Plan, Timestamp};
use water_keystore::connection::Purpose;
use water_keystore::{
    ConnectionSettings, Directory, Entry, Instance, InvalidInstance, Observation, Origin, Owner,
    Position, Record, StoreError, WriteError, Writer,
};
use water_resources::api_key::ApiName;

use super::claims::ClaimOutcome;
use super::duties::{Duty, DutyFailure};
use super::health::Damage;
use super::pending::PendingDeclarations;
use super::{CacheEpoch, DirectoryError};
use crate::lease::positions::LEFT_OUT;
use crate::lock::lock;

/// A directory, claimed or not.
pub struct OpenDirectory {
    /// The WaterDataApi that it belongs to.
    pub api: ApiName,
    pub(super) place: Location,
    pub(super) directory: Directory,
    /// Notified when a claim shall be made.
    pub(super) claim_wanted: Notify,
    /// Outcome of the last claim.
    pub(super) claims: watch::Sender<ClaimOutcome>,
    /// Declarations that the gates have not acknowledged yet.
    pub pending: PendingDeclarations,
    known: Mutex<DirectoryState>,
    /// Notified when another directory replaces this one, or nothing refers to it any more.
    pub(super) closed: Notify,
}

/// Knowledge of this leadership about a directory.
#[derive(Default)]
pub(super) struct DirectoryState {
    /// Writer of the claim; `None` until claimed, and again once the directory was found damaged.
    pub(super) writer: Option<Writer>,
    /// Damage that a check has shown, and no claim has confirmed yet.
    pub(super) found: Option<Damage>,
    /// Time at which the claim that is under way was first wanted.
    pub(super) claimed_since: Option<Instant>,
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
    /// Records that a rebuild carries over, by uid: of ApiKeys that cannot be decoded, or are held back, the cluster
    /// does not say everything.
    carried: HashMap<Box<str>, Vec<Entry>>,
    /// Last uses that statuses do not show yet.
    pub(super) uses: HashMap<KeyId, Timestamp>,
    /// Result of the last check.
    pub(super) observed: Option<Observation>,
    /// Time and error of the first of the checks that have had no answer since; `None`: the last one had an answer.
    pub(super) away: Option<(Instant, Arc<StoreError>)>,
    /// The latest position that a check or an answer to a write has shown since the last rebuild, or that an earlier
    /// leader has left.
    pub(super) reached: Position,
    /// Damage that was seen and is not repaired yet: a rebuild is due, though the directory may look whole.
    pub(super) damage: Option<String>,
    /// Damage that the latest rebuild has repaired, and that was not reported yet.
    pub(super) repaired: Option<String>,
    /// Number of owners that the last sweep would have removed, if that was too many.
    pub(super) held_back: Option<usize>,
    /// Failures of what is done besides passes.
    pub(super) failures: BTreeMap<Duty, DutyFailure>,
}

/// Connection to a directory, and its owner.
#[derive(Clone, Debug)]
pub struct Location {
    /// Settings of the connection to Redis.
    pub settings: ConnectionSettings,
    /// Fingerprint of `settings`, which changes when they do.
    pub fingerprint: String,
    /// Name that distinguishes this Redis from another one.
    pub store: String,
    /// Name of the Redis that the gates read, as their pods carry it; `None` if that cannot be known.
    pub gate_store: Option<String>,
    /// Whether the status does not name this Redis: another one may have been written since, and what this one holds
    /// has missed changes.
    pub is_behind: bool,
    /// The uid of the WaterDataApi's namespace.
    pub owner: String,
    /// The uid of the WaterDataApi: another one of the same name begins afresh.
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
            claim_wanted: Notify::new(),
            claims: watch::Sender::new(Ok(())),
            pending: PendingDeclarations::default(),
            known: Mutex::default(),
            closed: Notify::new(),
        })
    }

    pub(super) fn known(&self) -> MutexGuard<'_, DirectoryState> {
        lock(&self.known)
    }

    /// Whether it has missed changes, though it may look whole, and was not rebuilt since.
    pub(super) fn is_behind(&self) -> bool {
        self.place.is_behind && !self.was_claimed()
    }

    /// The directory, for questions.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Result of the last check of the directory and its server.
    pub fn observed(&self) -> Option<Observation> {
        self.known().observed.clone()
    }

    /// Fails while Redis is known to be away, since asking it would take until a timeout.
    pub fn answers(&self) -> Result<(), DirectoryError> {
        let away = self.known().away.clone();
        away.map_or(Ok(()), |(_, error)| Err(DirectoryError::Away(error)))
    }

    /// Whether Redis has not answered for so long.
    pub fn is_away_for(&self, long: Duration) -> bool {
        let away = &self.known().away;
        away.as_ref()
            .is_some_and(|(since, _)| since.elapsed() >= long)
    }

    /// Notes that the directory has reached this position: one that shows an earlier one went back.
    pub(super) fn has_reached(&self, position: Position) {
        let mut known = self.known();
        known.reached = known.reached.max(position);
    }

    /// Begins with the position that an earlier leader has left: a directory before it went back meanwhile.
    pub(super) fn begin_after(&self, left: Option<Position>) {
        if left == Some(LEFT_OUT) {
            self.note_damage("the former leader had no room to note how far it was");
        }
        self.has_reached(left.unwrap_or_default());
    }

    /// The writer, whose changes are refused where the directory went back since it was last seen.
    pub(super) fn fenced(&self, writer: &Writer) -> Writer {
        writer.clone().after(self.known().reached)
    }

    /// Notes that a rebuild is due. Its first cause is reported once it is over.
    pub(super) fn note_damage(&self, cause: impl ToString) {
        let mut known = self.known();
        known.damage.get_or_insert_with(|| cause.to_string());
    }

    /// Gives up this term and every earlier one: no command under them is relied on any more.
    pub(super) fn give_up(&self, term: u64) {
        let mut known = self.known();
        known.unanswered = known.unanswered.max(term);
    }

    /// Whether this leadership has ever claimed it: before, there is nothing of ours to look after.
    pub fn was_claimed(&self) -> bool {
        self.known().was_claimed
    }

    /// Number of gone ApiKeys whose keys the last sweep has kept, since they were too many.
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

    /// Forgets what is held of an ApiKey: the cluster says all of it again, or it is gone.
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

    /// Every record for a rebuild: what is remembered of an ApiKey replaces what is stored of it, for Redis may have
    /// gone back since.
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

    /// Takes over what the cluster does not say from the directory that this one replaces.
    pub(super) fn inherit(&self, before: &Self) {
        let is_same_store = self.place.store == before.place.store;
        let (before, mut known) = (before.known(), self.known());
        known.plans.clone_from(&before.plans);
        known.carried.clone_from(&before.carried);
        if is_same_store {
            known.reached = before.reached;
            known.damage.clone_from(&before.damage);
        }
    }

    /// Time at which a key was last used, if its status shall show that.
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
    pub(super) fn begin(open: &'a OpenDirectory, writer: &Writer) -> Self {
        Self {
            open,
            term: writer.term(),
            is_answered: false,
        }
    }

    /// Ends the write with the outcome of its call, and returns that.
    pub(super) fn answered_by<T>(
        mut self,
        outcome: Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        match &outcome {
            Err(WriteError::Store(error)) => self.is_answered = !error.may_have_run(),
            Err(WriteError::Fenced { .. }) => {}
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
