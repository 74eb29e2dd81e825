//! The model as stateright explores it, and what must hold in every state.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use stateright::{Model, Property};

use crate::action::{Action, of_the_system, of_the_world};
use crate::bounds::{Bounds, Left, Material};
use crate::cluster::{Admits, Key, Phase, Secret};
use crate::gate::{Copy, Gate};
use crate::mistake::Mistake;
use crate::next::after;
use crate::records::{Hashes, KEYS, Record, SLOTS};
use crate::system::System;

/// Turns, in each of which everybody does all that there is to do; more than anything needs.
const TURNS: usize = 24;
/// Parts of what is known to settle, so that threads seldom wait for each other.
const PARTS: usize = 64;

pub struct Protocol {
    pub bounds: Bounds,
    pub mistake: Option<Mistake>,
    settling: Arc<Vec<Mutex<HashSet<u64>>>>,
}

impl Protocol {
    pub fn new(bounds: Bounds, mistake: Option<Mistake>) -> Self {
        let parts = (0..PARTS).map(|_| Mutex::default());
        Self {
            bounds,
            mistake,
            settling: Arc::new(parts.collect()),
        }
    }
}

impl Model for Protocol {
    type State = System;
    type Action = Action;

    fn init_states(&self) -> Vec<System> {
        vec![System::first(&self.bounds)]
    }

    fn actions(&self, system: &System, actions: &mut Vec<Action>) {
        of_the_system(self.has_moves(), actions);
        of_the_world(system, actions);
    }

    fn next_state(&self, system: &System, action: Action) -> Option<System> {
        let next = after(system, action, &self.bounds, self.mistake)?;
        Some(self.canonical(next))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "a valid key is never refused",
                |model: &Self, system: &System| {
                    (0..KEYS).all(|key| !system.refuses(key, model.mistake))
                },
            ),
            Property::always("a revoked key is never accepted", |_, system: &System| {
                let gone = |key: &usize| system.keys[*key].object.phase == Phase::Gone;
                (0..KEYS).filter(gone).all(|key| !system.knows_any(key))
            }),
            Property::always("what a status tells is in force", |_, system: &System| {
                (0..KEYS).all(|key| system.is_as_told(key))
            }),
            Property::always(
                "once faults stop everything settles",
                |model: &Self, system: &System| {
                    let is_asked = model.mistake.is_none_or(Mistake::keeps_from_rest);
                    !is_asked || model.settles(system)
                },
            ),
            Property::sometimes(
                "a key is in force at every gate",
                |model: &Self, system: &System| {
                    let is_told = |key: &Key| key.object.status.told;
                    system.copies().count() >= usize::from(model.bounds.gates)
                        && system.keys.iter().any(is_told)
                },
            ),
            Property::sometimes(
                "a key is gone once the faults are over",
                |_, system: &System| {
                    let left = Left {
                        slow: 0,
                        halts: 0,
                        ..system.left
                    };
                    left == Left::default()
                        && system
                            .keys
                            .iter()
                            .any(|key| key.object.phase == Phase::Gone)
                },
            ),
        ]
    }
}

impl Protocol {
    fn canonical(&self, system: System) -> System {
        let are_alike = self.bounds.keys > 1 && self.bounds.material != Material::Shared;
        system.canonical(are_alike, self.mistake)
    }

    /// Whether the system comes to rest as it should, if it does by itself, in turns, whatever it has to
    /// do. Gates that are cut off stay so.
    fn settles(&self, system: &System) -> bool {
        let mut visited = Vec::new();
        let mut actions = Vec::new();
        of_the_system(self.has_moves(), &mut actions);
        let mut system = System {
            left: Left::default(),
            ..system.clone()
        };
        for _ in 0..TURNS {
            if self.is_settled(&system) {
                break;
            }
            system = self.canonical(system);
            let mut hasher = DefaultHasher::new();
            system.hash(&mut hasher);
            let known = hasher.finish();
            if self.part(known).contains(&known) {
                break;
            }
            visited.push(known);
            for action in &actions {
                system = after(&system, *action, &self.bounds, self.mistake).unwrap_or(system);
            }
        }
        let settles = visited.len() < TURNS;
        if settles {
            for known in visited {
                self.part(known).insert(known);
            }
        }
        settles
    }

    fn part(&self, known: u64) -> std::sync::MutexGuard<'_, HashSet<u64>> {
        let part = &self.settling[known as usize % PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_moves(&self) -> bool {
        self.bounds.left.moves > 0
    }

    fn is_settled(&self, system: &System) -> bool {
        let is_named = system.names.whole == Some(system.named);
        is_named && (0..KEYS).all(|key| self.is_at_rest(system, key))
    }

    fn is_at_rest(&self, system: &System, index: usize) -> bool {
        let key = &system.keys[index];
        let status = &key.object.status;
        match key.object.phase {
            Phase::Absent | Phase::Gone => true,
            Phase::Deleting => key.refused && !system.knows_any(index),
            Phase::Declared if !system.exists => true,
            // Nothing of it was declared, so that no directory puts the name back.
            Phase::Declared if status.misnamed && !system.store(system.named).knows(index) => true,
            Phase::Declared if key.refused => system.is_restricted(index),
            Phase::Declared => match system.admits {
                Admits::No => !system.knows_any(index),
                Admits::Hindered => system.is_restricted(index),
                Admits::Yes => {
                    let current = status.current.map(|hash| key.revision_of(hash));
                    let is_wanted = current != Some(key.object.spec.revision);
                    let is_bound = key.issued >= self.bounds.hashes;
                    let is_loser = self.bounds.material == Material::Shared;
                    let is_foreign = key.secret == Secret::Foreign;
                    let has_one = match key.secret {
                        Secret::Own {
                            hash, is_edited, ..
                        } => !is_edited && status.current == Some(hash),
                        _ => key.object.spec.brought.is_some(),
                    };
                    system.is_restricted(index)
                        && (is_bound && (is_wanted || !has_one)
                            || is_loser
                            || is_foreign
                            || has_one && status.told && !status.misnamed)
                }
            },
        }
    }
}

impl System {
    fn copies(&self) -> impl Iterator<Item = Copy> {
        self.gates.iter().filter_map(Gate::serving)
    }

    /// Whether a gate accepts any hash of a key, whatever its terms.
    fn knows_any(&self, key: usize) -> bool {
        self.copies()
            .any(|copy| copy.records.owned_by(key).next().is_some())
    }

    /// Whether a suspended key is so at every gate.
    fn is_restricted(&self, key: usize) -> bool {
        let is_refused = |copy: Copy| {
            let mut records = copy.records.owned_by(key);
            records.all(|(_, record)| record.suspended || record.is_retired(self.now))
        };
        !self.keys[key].object.spec.suspended || self.copies().all(is_refused)
    }

    /// Whether a gate refuses a key that its owner has.
    fn refuses(&self, index: usize, mistake: Option<Mistake>) -> bool {
        let key = &self.keys[index];
        let status = &key.object.status;
        let is_strict = mistake == Some(Mistake::LatePostAfterDeletion);
        if !key.is_declared() || key.withdrawn {
            return false;
        }
        let told = status.current.filter(|_| status.told);
        let (current, before) = match key.secret {
            _ if key.disturbed && !is_strict => (None, None),
            Secret::Own {
                hash,
                retiring,
                is_edited: false,
            } => (Some(hash), retiring),
            _ => (told, status.previous),
        };
        // The successor of a successor ends the overlap: two keys work at most.
        let is_alone = status.all() == status.revealed();
        let before = before.filter(|(_, retires)| *retires > self.now && is_alone && status.told);
        // It has ended by one that was drawn later, though a late POST brings back the one between them.
        let is_newest = |hash: u8| usize::from(key.issued) == usize::from(hash) % SLOTS + 1;
        let is_barred = |hash| self.stores.iter().any(|store| store.bars(index, hash));
        let is_over = |hash| is_barred(hash) && !current.is_some_and(is_newest);
        let before = before.filter(|(hash, _)| !is_over(*hash));
        // Nothing retires before the first tick.
        let shown = status
            .current
            .filter(|_| status.shown && self.overlap && self.now == 0);
        let before = before.map(|(hash, _)| hash);
        let valid: Hashes = current.into_iter().chain(before).chain(shown).collect();
        let is_refused = |copy: &Copy, hash: u8| {
            let its = copy.records.get(hash).filter(|record| {
                usize::from(record.owner) == index && !record.is_retired(self.now)
            });
            its.is_none_or(|record| status.told && record.suspended && !key.object.spec.suspended)
        };
        let is_known = |hash| !self.copies().any(|copy| is_refused(&copy, hash));
        !valid.iter().all(is_known)
    }

    /// Whether every gate judges a key as its status says that they do: what is suspended is, a replaced
    /// key ends when the status says, and no hash that was brought along works but the present one and
    /// the one before it. (What the operator made and never revealed is known to nobody.)
    fn is_as_told(&self, index: usize) -> bool {
        let object = &self.keys[index].object;
        let status = &object.status;
        if !status.told || !self.keys[index].is_declared() || status.all() != status.revealed() {
            return true;
        }
        let is_told = |(hash, record): (u8, Record)| {
            let is_made = object.spec.brought.is_none();
            let is_current = status.current == Some(hash);
            record.is_retired(self.now)
                || match status.previous {
                    Some((before, at)) if before == hash && !is_current => {
                        record.retires.is_some_and(|retires| retires <= at)
                    }
                    _ => is_made || is_current,
                }
        };
        let mut copies = self.copies();
        self.is_restricted(index) && copies.all(|copy| copy.records.owned_by(index).all(is_told))
    }
}
