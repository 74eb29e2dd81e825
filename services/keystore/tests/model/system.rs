//! The whole: the cluster's objects, two leaders, two gates and one Redis; what may happen to them,
//! and what must hold.

use stateright::{Model, Property};

use crate::gate::{self, Gate, Pod};
use crate::operator::{self, Claim, Operator};
use crate::protocol::{Bounds, KEYS, Mistake, SLOTS};
use crate::redis::{Hashes, Lease, Meta, Store};

/// In each, everybody does all there is to do; more than any deletion needs.
const TURNS: u8 = 16;

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    #[default]
    Absent,
    Declared,
    Deleting,
    /// The finalizer is gone.
    Gone,
}

/// An ApiKey, its status and its Secret.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    pub phase: Phase,
    /// Hashes made so far.
    pub issued: u8,
    /// Hashes that the Secret shall have named: 1, or 2 after a rotation.
    pub wanted: u8,
    /// Hashes that the status names and no Secret does; all of them once the key is being deleted.
    pub pending: Hashes,
    /// Hashes that the Secret names: the current one and, in its overlap, the one before.
    pub revealed: Hashes,
}

impl Key {
    pub fn wants_hash(&self) -> bool {
        self.revealed.len() < self.wanted
    }

    pub fn next_hash(&self, key: u8) -> u8 {
        key * SLOTS as u8 + self.issued
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct System {
    pub keys: [Key; KEYS],
    pub operators: [Operator; 2],
    pub gates: [Gate; 2],
    pub store: Store,
    /// Which `master_replid` the server has.
    pub server: bool,
    /// The data that a rollback or promotion gives back.
    pub saved: Option<Store>,
    pub left: Left,
}

/// What of the bounds is left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Left {
    pub losses: u8,
    pub pauses: u8,
    pub cuts: u8,
    pub starts: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    Create(usize),
    Rotate(usize),
    Delete(usize),
    Start(usize),
    Stop(usize),
    Gate(usize, gate::Step),
    Operator(usize, operator::Step),
    /// The leader stands still until its Lease has run out.
    Pause(usize),
    Cut(usize),
    Heal(usize),
    /// Redis' data as they are can come back later: a dump is written, or a replica is up to date.
    Save,
    Wipe,
    /// Redis restarts with an old dump, or a replica that lacks the last writes is promoted. The leases
    /// come back as they were then, and so seem to have run out.
    GoBack,
}

pub struct Directory {
    pub bounds: Bounds,
    pub mistake: Option<Mistake>,
}

impl Model for Directory {
    type State = System;
    type Action = Action;

    fn init_states(&self) -> Vec<System> {
        let bounds = self.bounds;
        let meta = Meta {
            term: 1,
            generation: 1,
            seq: 1,
            complete: true,
            server: Some(false),
        };
        let at = meta.position();
        let leader = Operator {
            holds: true,
            leading: true,
            term: 1,
            claim: Claim::Open,
            ..Operator::default()
        };
        let ready = Gate {
            pod: Pod::Ready,
            leased: true,
            copy: Some(gate::Copy {
                at,
                records: Hashes(0),
            }),
            lease: Some(Lease {
                applied: at,
                run_out: false,
            }),
            ..Gate::default()
        };
        vec![System {
            keys: Default::default(),
            operators: [leader, Operator::default()],
            gates: [
                ready,
                Gate {
                    pod: Pod::NeverReady,
                    ..Gate::default()
                },
            ],
            store: Store {
                meta: Some(meta),
                ..Store::default()
            },
            server: false,
            saved: None,
            left: Left {
                losses: bounds.losses,
                pauses: bounds.pauses,
                cuts: bounds.cuts,
                starts: bounds.starts,
            },
        }]
    }

    fn actions(&self, _: &System, actions: &mut Vec<Action>) {
        for number in 0..2 {
            actions.extend(gate::STEPS.map(|step| Action::Gate(number, step)));
            actions.extend(operator::STEPS.map(|step| Action::Operator(number, step)));
            actions.extend([
                Action::Start(number),
                Action::Stop(number),
                Action::Cut(number),
            ]);
            actions.extend([Action::Heal(number), Action::Pause(number)]);
        }
        for key in 0..KEYS {
            actions.extend([
                Action::Create(key),
                Action::Rotate(key),
                Action::Delete(key),
            ]);
        }
        actions.extend([Action::Save, Action::Wipe, Action::GoBack]);
    }

    fn next_state(&self, system: &System, action: Action) -> Option<System> {
        Some(self.after(system, action)?.canonical(self.mistake))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a valid key is never refused", |_, system: &System| {
                !system.refuses_a_valid_key()
            }),
            Property::always("a revoked key is never accepted", |_, system: &System| {
                !system.accepts_a_revoked_key()
            }),
            Property::always("every deletion ends", |model: &Self, system: &System| {
                model.ends_deletions(system)
            }),
            Property::sometimes(
                "a key is rotated, where it may be",
                |model: &Self, system: &System| {
                    model.bounds.hashes == 1
                        || system.keys.iter().any(|key| key.revealed.len() == 2)
                },
            ),
            Property::sometimes(
                "a key is gone after a loss of Redis",
                |_, system: &System| {
                    system.left.losses == 0
                        && system.keys.iter().any(|key| key.phase == Phase::Gone)
                },
            ),
        ]
    }
}

impl Directory {
    /// Whether no key is being deleted any more once the system has done by itself, in turns, whatever
    /// it has to do. Faults do not heal meanwhile; a state in which nothing is left to do is one of these.
    fn ends_deletions(&self, system: &System) -> bool {
        let is_deleting =
            |system: &System| system.keys.iter().any(|key| key.phase == Phase::Deleting);
        let mut system = system.clone();
        for _ in 0..TURNS {
            if !is_deleting(&system) {
                return true;
            }
            for number in 0..2 {
                let gate = gate::STEPS.map(|step| Action::Gate(number, step));
                let operator = operator::STEPS.map(|step| Action::Operator(number, step));
                for action in gate.into_iter().chain(operator) {
                    system = self.after(&system, action).unwrap_or(system);
                }
            }
        }
        !is_deleting(&system)
    }

    fn after(&self, system: &System, action: Action) -> Option<System> {
        let mut next = system.clone();
        match action {
            Action::Gate(number, step) => {
                next.gates[number] = gate::step(system, system.gates[number], step, self.mistake)?;
            }
            Action::Operator(number, step) => {
                return operator::step(system, number, step, self.bounds.hashes, self.mistake);
            }
            Action::Create(key) => {
                let created = system.keys.iter().filter(|key| key.phase != Phase::Absent);
                let may = created.count() < usize::from(self.bounds.keys);
                let key = &mut next.keys[key];
                (may && key.phase == Phase::Absent).then_some(())?;
                *key = Key {
                    phase: Phase::Declared,
                    wanted: 1,
                    ..Key::default()
                };
            }
            Action::Rotate(key) => {
                let key = &mut next.keys[key];
                let may = key.phase == Phase::Declared && key.wanted == 1 && !key.wants_hash();
                (may && key.issued < self.bounds.hashes).then_some(())?;
                key.wanted = 2;
            }
            Action::Delete(key) => {
                let key = &mut next.keys[key];
                (key.phase == Phase::Declared).then_some(())?;
                let pending = key.pending.and(key.revealed);
                *key = Key {
                    phase: Phase::Deleting,
                    pending,
                    ..Key::default()
                };
            }
            Action::Start(number) => {
                spend(&mut next.left.starts)?;
                let gate = &mut next.gates[number];
                (gate.pod == Pod::Absent).then_some(())?;
                *gate = Gate {
                    pod: Pod::NeverReady,
                    ..Gate::default()
                };
            }
            Action::Stop(number) => {
                spend(&mut next.left.starts)?;
                let gate = &mut next.gates[number];
                (gate.pod != Pod::Absent).then_some(())?;
                *gate = Gate::default();
            }
            Action::Pause(number) => {
                spend(&mut next.left.pauses)?;
                let operator = &mut next.operators[number];
                operator.holds.then_some(())?;
                operator.holds = false;
            }
            Action::Cut(number) => {
                spend(&mut next.left.cuts)?;
                let gate = &mut next.gates[number];
                (gate.pod != Pod::Absent && !gate.cut).then_some(())?;
                gate.cut = true;
            }
            Action::Heal(number) => {
                let gate = &mut next.gates[number];
                gate.cut.then_some(())?;
                gate.cut = false;
            }
            Action::Save => {
                (system.left.losses > 0 && system.saved.is_none()).then_some(())?;
                system.store.meta?;
                next.saved = Some(system.store);
            }
            Action::Wipe => {
                spend(&mut next.left.losses)?;
                system.store.meta?;
                next.store = Store::default();
                next.lose(|_| None);
            }
            Action::GoBack => {
                spend(&mut next.left.losses)?;
                next.store = system.saved?;
                next.server = !system.server;
                let meta = next.store.meta?;
                next.lose(|lease| {
                    Some(Lease {
                        applied: lease.applied.min(meta.position()),
                        run_out: true,
                    })
                });
            }
        }
        Some(next)
    }
}

fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}

impl System {
    /// The directory is complete, on the server that completed it.
    pub fn is_whole(&self) -> bool {
        self.store
            .meta
            .is_some_and(|meta| meta.complete && meta.server == Some(self.server))
    }

    /// All hashes that a rebuild carries: those of Secrets, and those that wait to be revealed.
    pub fn declared(&self, mistake: Option<Mistake>) -> Hashes {
        let declared = self.keys.iter().filter(|key| key.phase == Phase::Declared);
        declared.fold(Hashes(0), |all, key| match mistake {
            Some(Mistake::RebuildOfSecretsAlone) => all.and(key.revealed),
            _ => all.and(key.pending).and(key.revealed),
        })
    }

    fn refuses_a_valid_key(&self) -> bool {
        let declared = self.keys.iter().filter(|key| key.phase == Phase::Declared);
        let valid = declared.fold(Hashes(0), |all, key| all.and(key.revealed));
        let mut copies = self.gates.iter().filter_map(Gate::serving);
        copies.any(|copy| !valid.without(copy.records).is_empty())
    }

    fn accepts_a_revoked_key(&self) -> bool {
        let gone = (0..KEYS).filter(|key| self.keys[*key].phase == Phase::Gone);
        let revoked = gone.fold(Hashes(0), |all, key| all.and(Hashes(0xf << (key * SLOTS))));
        let mut copies = self.gates.iter().filter_map(Gate::serving);
        copies.any(|copy| !revoked.common(copy.records).is_empty())
    }

    /// Redis' data are not those of a moment ago, and the leases these.
    fn lose(&mut self, lease: impl Fn(Lease) -> Option<Lease>) {
        self.saved = None;
        for gate in &mut self.gates {
            gate.lease = gate.lease.and_then(&lease);
        }
    }
}
