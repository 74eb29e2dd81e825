//! A leader: it claims the directory, keeps it whole, and passes over one key at a time.

use crate::acknowledgement::acknowledgement;
use crate::gate::Pod;
use crate::protocol::Mistake;
use crate::redis::{Applied, Hashes, Meta, Store};
use crate::system::{Key, Phase, System};

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Operator {
    /// The Lease names it.
    pub holds: bool,
    /// It believes that it leads.
    pub leading: bool,
    /// The term that it claimed; 0: none.
    pub term: u8,
    pub claim: Claim,
    pub pass: Pass,
}

/// How far it has come with its claim of the directory.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Claim {
    #[default]
    None,
    Claimed,
    /// A rebuild with these contents has begun.
    Rebuilding(Hashes),
    /// The Lease, read again, is its own, and the directory is whole: passes may write.
    Open,
}

/// What it is about to do for a key. Every step is one request to Redis or to the API server, and a
/// pause may come before each.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Pass {
    #[default]
    Idle,
    /// A hash is announced in the status; `over` are those that the Secret names.
    Publish {
        hash: u8,
        over: Hashes,
        applied: Option<Applied>,
    },
    /// The gates have it.
    Reveal {
        hash: u8,
        over: Hashes,
    },
    Revoke {
        key: u8,
        applied: Applied,
    },
    /// The gates have let it go.
    Release {
        key: u8,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    TakeLease,
    Resign,
    Claim,
    ReadLease,
    EndRebuild,
    Verify,
    Begin(u8),
    Publish,
    Check,
    Finish,
    Withdraw(u8),
}

pub const STEPS: [Step; 13] = [
    Step::TakeLease,
    Step::Resign,
    Step::Claim,
    Step::ReadLease,
    Step::EndRebuild,
    Step::Verify,
    Step::Begin(0),
    Step::Begin(1),
    Step::Publish,
    Step::Check,
    Step::Finish,
    Step::Withdraw(0),
    Step::Withdraw(1),
];

/// The system after a step of leader `number`; `None`: there is nothing to do.
pub fn step(
    system: &System,
    number: usize,
    step: Step,
    hashes: u8,
    mistake: Option<Mistake>,
) -> Option<System> {
    let mut next = system.clone();
    let own = system.operators[number];
    let me = &mut next.operators[number];
    match step {
        Step::TakeLease => {
            if system.operators.iter().any(|operator| operator.holds) {
                return None;
            }
            *me = Operator {
                holds: true,
                leading: true,
                ..Operator::default()
            };
        }
        Step::Resign => {
            let another = system.operators.iter().any(|operator| operator.holds);
            if !own.leading || own.holds || !another {
                return None;
            }
            *me = Operator::default();
        }
        Step::Claim => {
            if !own.leading || own.claim != Claim::None {
                return None;
            }
            me.term = system.term_after_all();
            me.claim = Claim::Claimed;
            let empty = Meta {
                term: 0,
                generation: 0,
                seq: 0,
                complete: false,
                server: None,
            };
            let stored = system.store.meta.unwrap_or(empty);
            next.store.meta = Some(Meta {
                term: me.term,
                ..stored
            });
        }
        Step::ReadLease => match own.claim {
            Claim::Claimed if !own.holds && mistake != Some(Mistake::ClaimWithoutReading) => {
                *me = Operator::default()
            }
            Claim::Claimed if system.is_whole() => me.claim = Claim::Open,
            Claim::Claimed => begin_rebuild(&mut next, number, mistake),
            _ => return None,
        },
        Step::EndRebuild => {
            let Claim::Rebuilding(contents) = own.claim else {
                return None;
            };
            me.claim = Claim::Open;
            match fenced(&system.store, own.term, mistake) {
                Some(meta) if meta.server == Some(system.server) && !meta.complete => {
                    next.store.records = contents.without(system.store.revoked);
                    next.store.meta = Some(Meta {
                        complete: true,
                        ..meta
                    });
                }
                _ => me.give_up_claim(),
            }
        }
        Step::Verify => {
            if own.claim != Claim::Open || system.is_whole() {
                return None;
            }
            if mistake == Some(Mistake::RebuildWithoutClaim) {
                begin_rebuild(&mut next, number, mistake);
            } else {
                me.give_up_claim();
            }
        }
        Step::Begin(key) => {
            let found = system.keys[usize::from(key)];
            if !own.holds || own.claim != Claim::Open || own.pass != Pass::Idle {
                return None;
            }
            me.pass = match found.phase {
                Phase::Deleting => return write(system, number, Write::Revoke(key), mistake),
                Phase::Declared if found.wants_hash() && found.issued < hashes => {
                    let hash = found.next_hash(key);
                    let announced = &mut next.keys[usize::from(key)];
                    announced.issued += 1;
                    announced.pending = found.pending.and(Hashes::one(hash));
                    let over = found.revealed;
                    match mistake {
                        Some(Mistake::RevealBeforePublish) => Pass::Reveal { hash, over },
                        _ => Pass::Publish {
                            hash,
                            over,
                            applied: None,
                        },
                    }
                }
                _ => return None,
            };
        }
        Step::Publish => match own.pass {
            Pass::Publish {
                hash,
                over,
                applied: None,
            } => {
                return write(system, number, Write::Put { hash, over }, mistake);
            }
            _ => return None,
        },
        Step::Check => {
            let acknowledged = |applied| acknowledgement(system, applied, mistake);
            me.pass = match own.pass {
                Pass::Publish {
                    hash,
                    over,
                    applied: Some(applied),
                } => match acknowledged(applied)? {
                    true => Pass::Reveal { hash, over },
                    false => Pass::Publish {
                        hash,
                        over,
                        applied: None,
                    },
                },
                Pass::Revoke { key, applied } => match acknowledged(applied)? {
                    true => Pass::Release { key },
                    false => Pass::Idle,
                },
                _ => return None,
            };
        }
        Step::Finish => {
            me.pass = Pass::Idle;
            match own.pass {
                // Created, or put with the version that was read: somebody else's Secret stays.
                Pass::Reveal { hash, over } => {
                    let key = &mut next.keys[key_of(hash)];
                    if key.revealed == over && key.phase == Phase::Declared {
                        key.revealed = over.and(Hashes::one(hash));
                        key.pending = key.pending.without(Hashes::one(hash));
                    }
                }
                Pass::Release { key } => {
                    let key = &mut next.keys[usize::from(key)];
                    if key.phase == Phase::Deleting {
                        *key = Key {
                            phase: Phase::Gone,
                            ..Key::default()
                        };
                    }
                }
                _ => return None,
            }
        }
        Step::Withdraw(key) => {
            let found = system.keys[usize::from(key)];
            let idle = own.holds && own.claim == Claim::Open && own.pass == Pass::Idle;
            if !idle
                || found.phase != Phase::Declared
                || found.wants_hash()
                || found.pending.is_empty()
            {
                return None;
            }
            let meta = fenced(&system.store, own.term, mistake)?;
            if meta.server != Some(system.server) {
                return None;
            }
            change(&mut next.store, meta, Hashes(0), found.pending);
            next.keys[usize::from(key)].pending = Hashes(0);
        }
    }
    Some(next)
}

#[derive(Clone, Copy)]
enum Write {
    Put { hash: u8, over: Hashes },
    Revoke(u8),
}

/// Runs a script: deletions and puts, or the fence's refusal.
fn write(system: &System, number: usize, write: Write, mistake: Option<Mistake>) -> Option<System> {
    let mut next = system.clone();
    let own = system.operators[number];
    let me = &mut next.operators[number];
    if own.claim != Claim::Open {
        return None;
    }
    let Some(meta) = fenced(&system.store, own.term, mistake) else {
        me.give_up_claim();
        return (mistake != Some(Mistake::NoClaimAfterRefusal)).then_some(next);
    };
    // Refused until the directory is rebuilt on this server.
    let verified = meta.complete && meta.server == Some(system.server);
    if !verified && mistake != Some(Mistake::WriteToUnverified) {
        return None;
    }
    me.pass = match write {
        Write::Put { hash, .. } if !Hashes::one(hash).common(system.store.revoked).is_empty() => {
            Pass::Idle
        }
        Write::Put { hash, over } => {
            let pending = &mut next.keys[key_of(hash)].pending;
            let others = match mistake {
                Some(Mistake::WithdrawBeforeReveal) => pending.without(Hashes::one(hash)),
                _ => Hashes(0),
            };
            *pending = pending.without(others);
            let applied = change(&mut next.store, meta, Hashes::one(hash), others);
            Pass::Publish {
                hash,
                over,
                applied: Some(applied),
            }
        }
        Write::Revoke(key) => {
            let hashes = system.keys[usize::from(key)].pending;
            let applied = change(&mut next.store, meta, Hashes(0), hashes);
            next.store.revoked = system.store.revoked.and(hashes);
            Pass::Revoke { key, applied }
        }
    };
    Some(next)
}

/// What is so already takes no `seq`.
fn change(store: &mut Store, mut meta: Meta, put: Hashes, remove: Hashes) -> Applied {
    let records = store.records.without(remove).and(put);
    if records != store.records {
        meta.seq += 1;
        store.records = records;
        store.meta = Some(meta);
    }
    meta.position()
}

/// The directory's meta, if a write with this term passes.
fn fenced(store: &Store, term: u8, mistake: Option<Mistake>) -> Option<Meta> {
    let passes = |meta: &Meta| meta.term == term || mistake == Some(Mistake::ClaimWithoutFence);
    store.meta.filter(passes)
}

impl Operator {
    fn give_up_claim(&mut self) {
        self.term = 0;
        self.claim = Claim::None;
    }
}

/// Begins a generation. Every number of it is above all earlier ones, by the clock.
fn begin_rebuild(next: &mut System, number: usize, mistake: Option<Mistake>) {
    let me = next.operators[number];
    let Some(meta) = fenced(&next.store, me.term, mistake) else {
        return next.operators[number].give_up_claim();
    };
    let seq = next.seq_after_all();
    let generation = next.generation_after_all();
    let server = Some(next.server);
    next.store.meta = Some(Meta {
        generation,
        seq,
        complete: false,
        server,
        ..meta
    });
    next.operators[number].claim = Claim::Rebuilding(next.declared(mistake));
    for gate in &mut next.gates {
        gate.outlived = gate.pod == Pod::NeverReady;
    }
}

fn key_of(hash: u8) -> usize {
    usize::from(hash) / crate::protocol::SLOTS
}
