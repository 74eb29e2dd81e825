//! Effects of a write: one request to Redis or to the API server.

use crate::cluster::{Phase, Secret, Status};
use crate::leader::{Claim, Hand, Mark, Memory, Note, Write};
use crate::mistake::Mistake;
use crate::records::at;
use crate::store::{Declaration, Declared};
use crate::system::System;

/// The system after a write. `from`: whose it is, unless nobody waits for its answer any more.
pub fn written(
    system: &System,
    hand: &Hand,
    from: Option<usize>,
    mistake: Option<Mistake>,
) -> System {
    let mut next = system.clone();
    let index = usize::from(hand.key);
    let phase = next.keys[index].object.phase;
    let is_living = matches!(phase, Phase::Declared | Phase::Deleting);
    let is_blind = mistake == Some(Mistake::StaleCache) && matches!(hand.write, Write::Report(_));
    let is_taken = is_living && !next.keys[index].refused;
    let may_change = is_taken && (hand.is_object_as_read || is_blind);
    match hand.write {
        Write::Declare(wanted) => declare(&mut next, index, &wanted, from, mistake),
        Write::Reveal(hash, retiring) | Write::Replace(hash, retiring) => {
            let is_created = matches!(hand.write, Write::Reveal(..));
            let is_as_read = hand.is_secret_as_read || mistake == Some(Mistake::ReplaceAnyVersion);
            let passes = match next.keys[index].secret {
                Secret::Missing => is_created && is_living,
                Secret::Own { .. } | Secret::Foreign => !is_created && is_as_read,
            };
            if passes {
                let secret = Secret::Own {
                    hash,
                    retiring,
                    is_edited: false,
                };
                next.change_secret(index, secret, from);
            }
            if let Some(number) = from {
                let memory = &mut next.leaders[number].memory[index];
                if passes {
                    memory.made = None;
                } else {
                    memory.is_overtaken = memory.made.is_some();
                }
            }
        }
        _ if !may_change => {}
        Write::Finalize => {
            next.change_object(index, from, |object| object.finalizer = true);
        }
        Write::Announce(hash) => next.change_object(index, from, |object| {
            let ledger = object.status.ledger().announce(hash);
            object.status = Status {
                named: true,
                misnamed: false,
                ..object.status.naming(&ledger)
            };
        }),
        Write::Retire(hash, retires) => next.change_object(index, from, |object| {
            let ledger = object.status.ledger();
            let ledger = ledger.retire(hash, at(retires), object.spec.brought);
            object.status = Status {
                misnamed: false,
                ..object.status.naming(&ledger)
            };
        }),
        Write::Report(status) => {
            next.change_object(index, from, |object| object.status = status);
            if status.told {
                let key = &mut next.keys[index];
                key.disturbed &= !hand.is_secret_as_read;
                key.withdrawn &= key.disturbed;
                if let Some(number) = from {
                    next.leaders[number].memory[index].made = None;
                }
            }
        }
        Write::Release => next.end(index),
    }
    next
}

/// Carries out a declaration of a key; `from`: the leader that waits for the answer.
pub fn declare(
    next: &mut System,
    key: usize,
    wanted: &Declaration,
    from: Option<usize>,
    mistake: Option<Mistake>,
) {
    let (server, number) = (next.server(wanted.store), next.number_after_all());
    let store = next.store_mut(wanted.store);
    let declared = store.declare(key, wanted, server, number, mistake);
    let leader = from.map(|number| &mut next.leaders[number]);
    // A directory that was left waits for nobody.
    let Some(leader) = leader.filter(|leader| leader.open == Some(wanted.store)) else {
        return;
    };
    match declared {
        Declared::Done { applied, number } => {
            let note = Note {
                mark: Mark {
                    generation: applied.generation,
                    number,
                    is_last: wanted.is_last,
                },
                seq: applied.seq,
                in_force: false,
            };
            begin(&mut leader.memory[key], note);
        }
        Declared::Outdated => {}
        Declared::Refused => {
            let is_its_own = leader.claim == Claim::Open && leader.term == wanted.term;
            if is_its_own && mistake != Some(Mistake::NoClaimAfterRefusal) {
                leader.give_up_claim();
            }
        }
    }
}

/// Waits, unless the same is waited for already.
pub fn begin(memory: &mut Memory, note: Note) {
    if memory.note.is_none_or(|known| known.mark != note.mark) {
        memory.note = Some(note);
    }
}
