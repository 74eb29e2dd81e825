//! A leader takes the Lease, claims the directory and keeps it whole. Its passes are in `pass`.

use water_operator_core::sweep::sweep;

use crate::cluster::{Phase, Secret};
use crate::contents::contents;
use crate::gate::Pod;
use crate::leader::Claim;
use crate::mistake::Mistake;
use crate::records::{Hashes, KEYS, Records};
use crate::store::{Declaration, Meta, Store};
use crate::system::System;
use crate::write::declare;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    TakeLease,
    Resign,
    Claim,
    ReadLease,
    EndRebuild,
    Verify,
    CatchUp,
    Sweep,
}

pub const STEPS: [Step; 8] = [
    Step::TakeLease,
    Step::Resign,
    Step::Claim,
    Step::ReadLease,
    Step::EndRebuild,
    Step::Verify,
    Step::CatchUp,
    Step::Sweep,
];

/// The system after a step of leader `number`; `None`: there is nothing to do.
pub fn step(
    system: &System,
    number: usize,
    step: Step,
    mistake: Option<Mistake>,
) -> Option<System> {
    let mut next = system.clone();
    let own = system.leaders[number];
    let me = &mut next.leaders[number];
    match step {
        Step::TakeLease => {
            if system.leaders.iter().any(|leader| leader.holds) {
                return None;
            }
            me.end();
            (me.holds, me.leading) = (true, true);
            if !system.names.is_behind(&system.named) {
                me.open = Some(system.named);
            }
        }
        Step::Resign => {
            let another = system.leaders.iter().any(|leader| leader.holds);
            if !own.leading || own.holds || !another {
                return None;
            }
            me.end();
        }
        Step::Claim => {
            // Without a WaterDataApi nobody says where the directory is.
            if !own.leading || own.claim != Claim::None || !system.exists {
                return None;
            }
            let store = own.open?;
            me.term = system.term_after_all();
            me.claim = Claim::Claimed;
            let term = me.term;
            let stored = system.store(store).meta.unwrap_or(Meta {
                term: 0,
                generation: 0,
                seq: 0,
                complete: false,
                server: None,
                api: system.api,
            });
            let is_ours = stored.api == system.api || mistake == Some(Mistake::ClaimOfAnotherApi);
            next.store_mut(store).meta = Some(Meta {
                term,
                complete: stored.complete && is_ours,
                api: system.api,
                ..stored
            });
        }
        Step::ReadLease => {
            if own.claim != Claim::Claimed {
                return None;
            }
            if !own.holds && mistake != Some(Mistake::ClaimWithoutReading) {
                me.end();
                return Some(next);
            }
            if !own.has_listed && mistake != Some(Mistake::ListBeforeClaim) {
                me.cache = None;
            }
            me.has_listed = true;
            if system.is_whole(own.open?) && !own.is_behind {
                me.claim = Claim::Open;
            } else {
                begin_rebuild(&mut next, number, mistake);
            }
        }
        Step::EndRebuild => {
            let Claim::Rebuilding(contents) = own.claim else {
                return None;
            };
            let open = own.open?;
            me.claim = Claim::Open;
            match fenced(system.store(open), own.term, mistake) {
                Some(meta) if meta.server == Some(system.server(open)) && !meta.complete => {
                    me.is_behind = false;
                    let number = system.number_after_all();
                    let store = next.store_mut(open);
                    store.replace(&contents, number);
                    store.meta = Some(Meta {
                        complete: true,
                        ..meta
                    });
                }
                _ => me.give_up_claim(),
            }
        }
        Step::Verify => {
            let store = own.open?;
            let meta = system.store(store).meta;
            let is_ours = meta.is_some_and(|meta| meta.term == own.term);
            if own.claim != Claim::Open || (system.is_whole(store) && is_ours) {
                return None;
            }
            match mistake {
                Some(Mistake::RebuildWithoutClaim) if !system.is_whole(store) => {
                    begin_rebuild(&mut next, number, mistake);
                }
                Some(Mistake::NoClaimAfterRefusal) if !is_ours => return None,
                _ => me.give_up_claim(),
            }
        }
        Step::CatchUp => {
            own.cache?;
            me.cache = None;
        }
        Step::Sweep => return swept(system, number, mistake),
    }
    Some(next)
}

/// Withdraws keys whose ApiKey is gone. The list of ApiKeys is read afresh; that it was so in the sweep before is not
/// modelled.
fn swept(system: &System, number: usize, mistake: Option<Mistake>) -> Option<System> {
    let leader = &system.leaders[number];
    let open = leader.open.filter(|_| leader.claim == Claim::Open)?;
    let held = system.store(open).records;
    let owners: Vec<usize> = (0..KEYS)
        .filter(|key| held.owned_by(*key).next().is_some())
        .collect();
    let is_living = |key: &usize| {
        let known = &system.keys[*key];
        let is_there = matches!(known.object.phase, Phase::Declared | Phase::Deleting);
        let has_secret = matches!(known.secret, Secret::Own { .. });
        is_there && (has_secret || mistake != Some(Mistake::SweepBySecrets))
    };
    let removable = sweep(&owners, is_living, |_| true, KEYS).removable.ok()?;
    let mut next = system.clone();
    for key in removable {
        let wanted = Declaration {
            store: open,
            term: leader.term,
            number: system.store(open).numbers[key],
            records: Records::default(),
            withdrawn: held.owned_by(key).map(|(hash, _)| hash).collect(),
            revoked: Hashes::default(),
            is_last: false,
            is_brought: false,
        };
        declare(&mut next, key, &wanted, Some(number), mistake);
    }
    (next != *system).then_some(next)
}

/// The directory's meta, if a write with this term passes.
fn fenced(store: &Store, term: u8, mistake: Option<Mistake>) -> Option<Meta> {
    let passes = |meta: &Meta| meta.term == term || mistake == Some(Mistake::ClaimWithoutFence);
    store.meta.filter(passes)
}

/// Begins a generation. Every number of it is above all earlier ones, by the clock.
fn begin_rebuild(next: &mut System, number: usize, mistake: Option<Mistake>) {
    let Some(store) = next.leaders[number].open else {
        return;
    };
    let contents = contents(next, number, mistake);
    let term = next.leaders[number].term;
    let Some(meta) = fenced(next.store(store), term, mistake) else {
        return next.leaders[number].give_up_claim();
    };
    let seq = next.seq_after_all();
    let generation = next.generation_after_all();
    let server = Some(next.server(store));
    next.store_mut(store).meta = Some(Meta {
        generation,
        seq,
        complete: false,
        server,
        ..meta
    });
    next.leaders[number].claim = Claim::Rebuilding(contents);
    for gate in next.gates.iter_mut().filter(|gate| gate.store == store) {
        gate.outlived = gate.pod == Pod::NeverReady;
    }
}
