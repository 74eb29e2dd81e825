//! One directory, from its opening to the end of the leadership.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use water_domain::Plan;
use water_keystore::connection::Purpose;
use water_keystore::{
    ConnectionSettings, Directory, Instance, InvalidInstance, Observation, StoreError, Writer,
};

use super::waits::Waits;
use crate::crd::api_key::IssuedAt;

/// One directory, claimed or not.
pub struct OpenDirectory {
    /// The WaterDataApi whose it is.
    pub api: IssuedAt,
    pub(super) place: Place,
    pub(super) directory: Directory,
    /// `None` until claimed, and again after a write was refused.
    pub(super) writer: tokio::sync::Mutex<Option<Writer>>,
    /// Whether this leadership has ever claimed it.
    claimed: AtomicBool,
    /// What the gates have not acknowledged yet.
    pub waits: Waits,
    /// The plans as last written: a Redis that was wiped knows them no more.
    plans: Mutex<Vec<Plan>>,
    /// What the last look showed; written by [`super::care`] only.
    observed: Mutex<Option<Observation>>,
    rebuilds: Mutex<Rebuilds>,
    closed: Notify,
}

/// Why a directory had to be rebuilt.
#[derive(Default)]
struct Rebuilds {
    /// Seen, and not mended yet.
    cause: Option<String>,
    /// Mended, and not told yet.
    untold: Option<String>,
}

/// Where a directory is and whose.
#[derive(Clone, Debug)]
pub struct Place {
    /// How Redis is reached.
    pub settings: ConnectionSettings,
    /// Changes when `settings` do.
    pub fingerprint: String,
    /// The uid of the WaterDataApi's namespace.
    pub owner: String,
    /// The uid of an owner that may be taken over.
    pub take_over: Option<String>,
}

impl OpenDirectory {
    pub(super) fn new(api: IssuedAt, place: Place) -> Result<Self, InvalidInstance> {
        let instance = Instance::new(&api.namespace, &api.name)?;
        let connection = place.settings.connect(Purpose::Directory);
        Ok(Self {
            directory: Directory::new(connection, instance),
            api,
            place,
            writer: tokio::sync::Mutex::default(),
            claimed: AtomicBool::new(false),
            waits: Waits::default(),
            plans: Mutex::default(),
            observed: Mutex::default(),
            rebuilds: Mutex::default(),
            closed: Notify::new(),
        })
    }

    /// The directory, for questions.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// What the last look showed of it and of its server.
    pub fn observed(&self) -> Option<Observation> {
        self.observed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn observe(&self, seen: Option<Observation>) {
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    pub(super) fn note_claim(&self) {
        self.claimed.store(true, Ordering::Release);
    }

    /// Whether this leadership has ever claimed it: before, there is nothing of ours to look after.
    pub(super) fn was_claimed(&self) -> bool {
        self.claimed.load(Ordering::Acquire)
    }

    /// What the directory will have to be rebuilt for.
    pub(super) fn note_damage(&self, cause: impl ToString) {
        self.rebuilds().cause = Some(cause.to_string());
    }

    pub(super) fn note_rebuild(&self) {
        let mut rebuilds = self.rebuilds();
        rebuilds.untold = rebuilds.cause.take();
    }

    /// Why it was rebuilt since this was asked last, whoever noticed it. Not of a leadership's first
    /// rebuild, for which nothing had to happen.
    pub(super) fn take_rebuild(&self) -> Option<String> {
        self.rebuilds().untold.take()
    }

    fn rebuilds(&self) -> MutexGuard<'_, Rebuilds> {
        self.rebuilds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the claim up with which a write was refused: the next use claims again.
    pub(super) async fn give_up(&self, refused: &Writer) {
        let mut held = self.writer.lock().await;
        if held
            .as_ref()
            .is_some_and(|held| held.term() == refused.term())
        {
            *held = None;
        }
    }

    /// The plans that the directory has or, before Redis lost them, had.
    pub(super) async fn known_plans(&self) -> Result<Vec<Plan>, StoreError> {
        let mut plans = self.directory.plans().await?;
        let remembered = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        for plan in remembered.iter() {
            if plans.iter().all(|known| known.name != plan.name) {
                plans.push(plan.clone());
            }
        }
        Ok(plans)
    }

    pub(super) fn remember_plans(&self, plans: &[Plan]) {
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner) = plans.to_vec();
    }

    /// Another directory took its place.
    pub(super) fn close(&self) {
        self.closed.notify_one();
    }

    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    pub(super) fn is_at(&self, place: &Place) -> bool {
        self.place.fingerprint == place.fingerprint
            && self.place.owner == place.owner
            && self.place.take_over == place.take_over
    }
}
