//! Declarations that gates have not acknowledged yet.
//!
//! A pass does not wait. It declares and leaves a note here; when [`Waits::judge`] finds the declaration
//! acknowledged, another pass over the ApiKey follows.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use water_keystore::{Applied, Owner};

use super::gates::{Awaited, Gates};

/// How a declaration stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// No gate can act any more on what was there before.
    InForce,
    /// Gates may still act on the former state.
    Awaiting {
        /// Their pods; empty before the first look.
        gates: Awaited,
        /// When the wait began.
        since: Instant,
    },
}

/// Identifies one declared state of an owner's keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The directory's generation: a rebuild may have undone what was acknowledged.
    pub generation: u64,
    pub number: u64,
    /// Whether the owner was revoked for good.
    pub is_last: bool,
}

/// Declarations that are not known to be in force, by the uid of their ApiKey.
#[derive(Debug, Default)]
pub struct Waits {
    notes: Mutex<HashMap<Box<str>, Note>>,
    /// Told when somebody begins to wait.
    begun: Notify,
}

#[derive(Debug)]
struct Note {
    owner: Owner,
    mark: Mark,
    /// A gate that has come so far has applied the declaration.
    applied: Applied,
    standing: Standing,
}

impl Waits {
    /// Waits for every gate to come to `applied`, unless the same is waited for already; answers how
    /// that stands.
    pub fn begin(&self, owner: &Owner, mark: Mark, applied: Applied, now: Instant) -> Standing {
        let mut notes = self.notes();
        if let Some(note) = notes.get(&owner.uid).filter(|note| note.mark == mark) {
            return note.standing.clone();
        }
        let standing = Standing::Awaiting {
            gates: Awaited::default(),
            since: now,
        };
        let note = Note {
            owner: owner.clone(),
            mark,
            applied,
            standing: standing.clone(),
        };
        notes.insert(owner.uid.clone(), note);
        self.begun.notify_one();
        standing
    }

    /// How it stands, if it is or was waited for.
    pub fn standing(&self, uid: &str, mark: Mark) -> Option<Standing> {
        let notes = self.notes();
        let note = notes.get(uid).filter(|note| note.mark == mark);
        note.map(|note| note.standing.clone())
    }

    pub fn forget(&self, uid: &str) {
        self.notes().remove(uid);
    }

    /// Forgets ApiKeys that are gone.
    pub fn retain(&self, living: &HashSet<String>) {
        self.notes().retain(|uid, _| living.contains(&**uid));
    }

    /// Returns when somebody waits.
    pub async fn begun(&self) {
        loop {
            let begun = self.begun.notified();
            if self.is_anybody_waiting() {
                return;
            }
            begun.await;
        }
    }

    /// Returns when another begins to wait.
    pub async fn another(&self) {
        self.begun.notified().await;
    }

    /// Whether a declaration is not known to be in force.
    pub fn is_anybody_waiting(&self) -> bool {
        self.notes().values().any(Note::is_waiting)
    }

    /// The declarations that are waited for: what the next look will judge.
    pub fn pending(&self) -> Vec<(Box<str>, Applied)> {
        let notes = self.notes();
        let waiting = notes.iter().filter(|(_, note)| note.is_waiting());
        waiting
            .map(|(uid, note)| (uid.clone(), note.applied))
            .collect()
    }

    /// Judges what was pending before the gates were looked at, and answers whose declarations are
    /// in force by now.
    pub fn judge(
        &self,
        pending: Vec<(Box<str>, Applied)>,
        gates: &Gates,
        now: Instant,
    ) -> Vec<Owner> {
        let mut notes = self.notes();
        let mut in_force = Vec::new();
        for (uid, applied) in pending {
            let Some(note) = notes.get_mut(&uid).filter(|note| note.applied == applied) else {
                continue;
            };
            let awaited = gates.awaited(&applied, now);
            if awaited.pods.is_empty() {
                note.standing = Standing::InForce;
                in_force.push(note.owner.clone());
            } else if let Standing::Awaiting { gates, .. } = &mut note.standing {
                *gates = awaited;
            }
        }
        in_force
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<Box<str>, Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Note {
    fn is_waiting(&self) -> bool {
        self.standing != Standing::InForce
    }
}

#[cfg(test)]
mod tests;
