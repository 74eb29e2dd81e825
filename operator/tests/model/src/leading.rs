//! A leader takes the Lease, claims the directory and keeps it whole. Its passes are in `pass`.

use crate::contents::contents;
use crate::gate::Pod;
use crate::leader::Claim;
use crate::mistake::Mistake;
use crate::store::{Meta, Store};
use crate::system::System;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    TakeLease,
    Resign,
    Claim,
    ReadLease,
    EndRebuild,
    Verify,
    CatchUp,
}

pub const STEPS: [Step; 7] = [
    Step::TakeLease,
    Step::Resign,
    Step::Claim,
    Step::ReadLease,
    Step::EndRebuild,
    Step::Verify,
    Step::CatchUp,
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
            me.term = system.term_after_all();
            me.claim = Claim::Claimed;
            let stored = system.store.meta.unwrap_or(Meta {
                term: 0,
                generation: 0,
                seq: 0,
                complete: false,
                server: None,
                api: system.api,
            });
            let is_ours = stored.api == system.api || mistake == Some(Mistake::ClaimOfAnotherApi);
            next.store.meta = Some(Meta {
                term: me.term,
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
            if system.is_whole() {
                me.claim = Claim::Open;
            } else {
                begin_rebuild(&mut next, number, mistake);
            }
        }
        Step::EndRebuild => {
            let Claim::Rebuilding(contents) = own.claim else {
                return None;
            };
            me.claim = Claim::Open;
            match fenced(&system.store, own.term, mistake) {
                Some(meta) if meta.server == Some(system.server) && !meta.complete => {
                    let number = system.number_after_all();
                    next.store.replace(&contents, number);
                    next.store.meta = Some(Meta {
                        complete: true,
                        ..meta
                    });
                }
                _ => me.give_up_claim(),
            }
        }
        Step::Verify => {
            let is_ours = system.store.meta.is_some_and(|meta| meta.term == own.term);
            if own.claim != Claim::Open || (system.is_whole() && is_ours) {
                return None;
            }
            match mistake {
                Some(Mistake::RebuildWithoutClaim) if !system.is_whole() => {
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
    }
    Some(next)
}

/// The directory's meta, if a write with this term passes.
fn fenced(store: &Store, term: u8, mistake: Option<Mistake>) -> Option<Meta> {
    let passes = |meta: &Meta| meta.term == term || mistake == Some(Mistake::ClaimWithoutFence);
    store.meta.filter(passes)
}

/// Begins a generation. Every number of it is above all earlier ones, by the clock.
fn begin_rebuild(next: &mut System, number: usize, mistake: Option<Mistake>) {
    let contents = contents(next, number, mistake);
    let term = next.leaders[number].term;
    let Some(meta) = fenced(&next.store, term, mistake) else {
        return next.leaders[number].give_up_claim();
    };
    let seq = next.seq_after_all();
    let generation = next.generation_after_all();
    next.store.meta = Some(Meta {
        generation,
        seq,
        complete: false,
        server: Some(next.server),
        ..meta
    });
    next.leaders[number].claim = Claim::Rebuilding(contents);
    for gate in &mut next.gates {
        gate.outlived = gate.pod == Pod::NeverReady;
    }
}
