//! A pass over one ApiKey: what the leader sees, what `decide` answers, and the write that follows.

use water_operator_core::key::decide;
use water_operator_core::key::facts::{Admission, Facts, Secret as Found};
use water_operator_core::key::ledger::Ledger;
use water_operator_core::key::step::Decision::{Do, Report};
use water_operator_core::key::step::{Declaration as Wanted, Handover, Refusal, Step, Verdict};

use crate::acknowledgement::is_acknowledged;
use crate::cluster::{Admits, Object, Phase, Status};
use crate::leader::{Claim, Hand, Note, Write};
use crate::mistake::Mistake;
use crate::records::{Record, Records, SLOTS, tick};
use crate::store::Declaration;
use crate::system::System;
use crate::{planted, seen};

/// Decision of a pass of leader `number` over `key`: the system with what it remembers, and the write to be done.
/// `None`: it changes nothing.
pub fn decided(
    system: &System,
    number: usize,
    key: usize,
    hashes: u8,
    mistake: Option<Mistake>,
) -> Option<(System, Option<Hand>)> {
    let leader = &system.leaders[number];
    let object = system.object(number, key);
    let is_living = |phase| matches!(phase, Phase::Declared | Phase::Deleting);
    let is_living = is_living(object.phase) && is_living(system.keys[key].object.phase);
    let is_free = leader.hand.is_none_or(|hand| usize::from(hand.key) != key);
    let may_look = leader.claim == Claim::Open || !system.exists;
    if !leader.leading || !is_living || !is_free || !may_look {
        return None;
    }
    let mut next = system.clone();
    let confirmed = seen::confirmed(system, number, key, object, mistake)?;
    loop {
        let seen = seen::seen(&mut next, number, key, &confirmed, mistake)?;
        let write = match decide(&seen) {
            Report(verdict) => report(verdict, &seen, &confirmed, mistake)
                .filter(|status| *status != object.status)
                .map(Write::Report),
            Do(step) => match planted::mistaken(step, &seen, mistake) {
                Some(Step::Make(_)) if next.keys[key].issued < hashes => {
                    make(&mut next, number, key, &seen);
                    continue;
                }
                // The bound is reached.
                None | Some(Step::Make(_) | Step::Amend) => None,
                Some(step) => Some(write(step, &next, number, key, &confirmed)),
            },
        };
        let hand = write.map(|write| Hand {
            key: key as u8,
            write,
            is_object_as_read: object == next.keys[key].object,
            is_secret_as_read: seen::found(&next, number, key) == next.keys[key].secret,
        });
        return (hand.is_some() || next != *system).then_some((next, hand));
    }
}

fn make(next: &mut System, number: usize, key: usize, seen: &Facts<u8, ()>) {
    let known = &mut next.keys[key];
    let hash = (key * SLOTS) as u8 + known.issued;
    let wanted = seen.spec.as_ref().map_or(0, |spec| spec.rotation.revision);
    let revision = wanted.max(seen.revision());
    known.revisions |= (revision as u8) << known.issued;
    known.issued += 1;
    let memory = &mut next.leaders[number].memory[key];
    (memory.made, memory.is_overtaken) = (Some(hash), false);
}

fn write(step: Step<u8, ()>, system: &System, number: usize, key: usize, object: &Object) -> Write {
    let handed = |handover: Handover<u8>| {
        let retiring = handover.retiring.map(|(hash, at)| (hash, tick(at)));
        (handover.hash, retiring)
    };
    match step {
        Step::Finalize => Write::Finalize,
        Step::Announce { hash, .. } => Write::Announce(hash),
        Step::Retire { hash, at } => Write::Retire(hash, tick(at)),
        Step::Declare(wanted) => Write::Declare(declaration(&wanted, system, number, key, object)),
        Step::Reveal(handover) => {
            let (hash, retiring) = handed(handover);
            Write::Reveal(hash, retiring)
        }
        Step::Replace(handover) => {
            let (hash, retiring) = handed(handover);
            Write::Replace(hash, retiring)
        }
        Step::Release(_) => Write::Release,
        Step::Make(_) | Step::Amend => unreachable!("none is a write of the model"),
    }
}

fn declaration(
    wanted: &Wanted<u8, ()>,
    system: &System,
    number: usize,
    key: usize,
    object: &Object,
) -> Declaration {
    let leader = &system.leaders[number];
    let mut records = Records::default();
    for (hash, rules) in &wanted.records {
        records.put(*hash, Record::new(key as u8, rules));
    }
    Declaration {
        store: leader.open.unwrap_or_default(),
        term: leader.term,
        number: wanted.number as u8,
        records,
        withdrawn: wanted.withdrawn.iter().copied().collect(),
        revoked: wanted.revoked.iter().copied().collect(),
        is_last: wanted.is_last,
        is_brought: object.spec.brought.is_some(),
    }
}

/// The status that a verdict without a step leaves; `None`: none is written.
fn report(
    verdict: Verdict<u8>,
    seen: &Facts<u8, ()>,
    object: &Object,
    mistake: Option<Mistake>,
) -> Option<Status> {
    let before = object.status;
    let is_foreign = seen.secret == Found::Foreign;
    let hindered = Status {
        told: false,
        ..before
    };
    let status = match verdict {
        _ if object.phase == Phase::Deleting => return None,
        Verdict::InForce(hash) => {
            let confirmed = match mistake {
                Some(Mistake::RetiringForgotten) => Ledger::confirm(hash, None),
                _ => seen.confirmed(hash),
            };
            Status {
                named: true,
                misnamed: false,
                told: true,
                admits: Admits::Yes,
                conflict: false,
                ..before.naming(&confirmed)
            }
        }
        Verdict::Refused(Refusal::NotAdmitted) => Status {
            admits: match seen.admission {
                Admission::Refused => Admits::No,
                _ => Admits::Hindered,
            },
            conflict: false,
            ..hindered
        },
        Verdict::Refused(Refusal::SecretConflict) => Status {
            admits: Admits::Yes,
            conflict: true,
            ..hindered
        },
        Verdict::Refused(_) => Status {
            admits: Admits::Yes,
            conflict: is_foreign,
            ..hindered
        },
        // Waiting is reported later, or not at all.
        Verdict::Awaiting | Verdict::Held(_) | Verdict::Released => return None,
    };
    Some(status)
}

/// Checks the gates that are waited for; `None`: nothing is acknowledged.
pub fn look(
    system: &System,
    number: usize,
    key: usize,
    mistake: Option<Mistake>,
) -> Option<System> {
    let leader = &system.leaders[number];
    let note = leader.memory[key].note.filter(|note| !note.in_force)?;
    if !leader.leading || !is_acknowledged(system, leader.open?, note.applied(), mistake) {
        return None;
    }
    let mut next = system.clone();
    next.leaders[number].memory[key].note = Some(Note {
        in_force: true,
        ..note
    });
    Some(next)
}
