//! Declarations that gates have not acknowledged yet.
//!
//! A pass does not wait. It declares and enters the declaration here; when [`PendingDeclarations::judge`]
//! finds it acknowledged, another pass over the ApiKey follows.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Mutex;

use tokio::sync::Notify;
use tokio::time::Instant;
use water_keystore::{Owner, Position};

use super::gates::{AwaitedPods, Gates};
use crate::lock::lock;

/// Effect of a declaration on the gates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeclarationState {
    /// No gate can act any more on what was there before.
    InForce,
    /// Gates may still act on the former state.
    Awaiting {
        /// Pods of these gates; empty before the first check.
        gates: AwaitedPods,
        /// Time at which the wait began.
        since: Instant,
    },
}

/// Identifies one declared state of an owner's keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeclarationId {
    /// The directory's generation: a rebuild may have undone what was acknowledged.
    pub generation: u64,
    pub number: u64,
    /// Whether the owner was revoked permanently.
    pub is_last: bool,
}

/// Declarations that are not known to be in force, by the uid of their ApiKey.
#[derive(Debug, Default)]
pub struct PendingDeclarations {
    declarations: Mutex<HashMap<Box<str>, PendingDeclaration>>,
    /// Notified when somebody begins to wait.
    begun: Notify,
}

#[derive(Debug)]
struct PendingDeclaration {
    owner: Owner,
    id: DeclarationId,
    /// A gate that has come so far has applied the declaration.
    applied: Position,
    state: DeclarationState,
}

impl PendingDeclarations {
    /// Waits for every gate to reach `applied`, unless the same is waited for already; returns the state of that
    /// declaration.
    pub fn begin(
        &self,
        owner: &Owner,
        id: DeclarationId,
        applied: Position,
        now: Instant,
    ) -> DeclarationState {
        let mut declarations = lock(&self.declarations);
        if let Some(declared) = declarations
            .get(&owner.uid)
            .filter(|declared| declared.id == id)
        {
            return declared.state.clone();
        }
        let state = DeclarationState::Awaiting {
            gates: AwaitedPods::default(),
            since: now,
        };
        let declared = PendingDeclaration {
            owner: owner.clone(),
            id,
            applied,
            state: state.clone(),
        };
        declarations.insert(owner.uid.clone(), declared);
        self.begun.notify_one();
        state
    }

    /// State of a declaration, if it is or was waited for.
    pub fn state(&self, uid: &str, id: DeclarationId) -> Option<DeclarationState> {
        let declarations = lock(&self.declarations);
        let declared = declarations.get(uid).filter(|declared| declared.id == id);
        declared.map(|declared| declared.state.clone())
    }

    pub fn forget(&self, uid: &str) {
        lock(&self.declarations).remove(uid);
    }

    /// Forgets ApiKeys that are gone.
    pub fn retain(&self, living: &HashSet<String>) {
        lock(&self.declarations).retain(|uid, _| living.contains(&**uid));
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
        lock(&self.declarations)
            .values()
            .any(PendingDeclaration::is_waiting)
    }

    /// Gates' pods that are waited for.
    pub fn silent(&self) -> BTreeSet<String> {
        let declarations = lock(&self.declarations);
        let states = declarations.values().map(|declared| &declared.state);
        let pods = states.flat_map(|state| match state {
            DeclarationState::Awaiting { gates, .. } => Some(&gates.pods),
            DeclarationState::InForce => None,
        });
        pods.flatten().cloned().collect()
    }

    /// Declarations that are waited for, which the next check will judge.
    pub fn awaited(&self) -> Vec<(Box<str>, Position)> {
        let declarations = lock(&self.declarations);
        let waiting = declarations
            .iter()
            .filter(|(_, declared)| declared.is_waiting());
        waiting
            .map(|(uid, declared)| (uid.clone(), declared.applied))
            .collect()
    }

    /// Judges declarations that were waited for before the gates were checked. Returns the owners whose declarations
    /// are in force by now.
    pub fn judge(
        &self,
        awaited: Vec<(Box<str>, Position)>,
        gates: &Gates,
        now: Instant,
    ) -> Vec<Owner> {
        let mut declarations = lock(&self.declarations);
        let mut in_force = Vec::new();
        for (uid, applied) in awaited {
            let Some(declared) = declarations
                .get_mut(&uid)
                .filter(|declared| declared.applied == applied)
            else {
                continue;
            };
            let pods = gates.awaited(&applied, now);
            if pods.pods.is_empty() {
                declared.state = DeclarationState::InForce;
                in_force.push(declared.owner.clone());
            } else if let DeclarationState::Awaiting { gates, .. } = &mut declared.state {
                *gates = pods;
            }
        }
        in_force
    }
}

impl PendingDeclaration {
    fn is_waiting(&self) -> bool {
        self.state != DeclarationState::InForce
    }
}

#[cfg(test)]
mod tests;
