//! Gates that a change waits for, and the moment at which each can no longer act on what was before it:
//! `directories::gates`, but for a gate that never completes a load, which `loading` has.

use crate::gate::{Gate, Pod};
use crate::mistake::Mistake;
use crate::store::{Applied, Meta};
use crate::system::System;

/// Checks that no gate can act any more on what was there before the change in a Redis. A gate that reads the other
/// Redis is waited for until its pod ends.
pub fn is_acknowledged(
    system: &System,
    store: u8,
    change: Applied,
    mistake: Option<Mistake>,
) -> bool {
    let is_verified = |meta: &Meta| match mistake {
        Some(Mistake::WriteToUnverified | Mistake::JudgeUnverified) => true,
        _ => meta.server == Some(system.server(store)),
    };
    let meta = system.store(store).meta.filter(is_verified);
    let now = meta.map(|meta| meta.generation);
    let is_given = |gate: &Gate| {
        let is_elsewhere = gate.pod != Pod::Absent && gate.store != store;
        !is_elsewhere && has_come_to(gate, change, now, mistake)
    };
    system.gates.iter().all(is_given)
}

fn has_come_to(gate: &Gate, change: Applied, now: Option<u8>, mistake: Option<Mistake>) -> bool {
    let is_any = mistake == Some(Mistake::AcknowledgementOfAnyGeneration);
    let may_have_read = match mistake {
        Some(Mistake::NeverReadyHasReadNothing) => gate.pod == Pod::Ready,
        _ => gate.pod == Pod::Ready || gate.outlived,
    };
    let is_present = |applied: Applied| Some(applied.generation) == now;
    match gate.lease {
        _ if gate.pod == Pod::Absent => true,
        Some(lease) if lease.applied.seq >= change.seq && (is_any || is_present(lease.applied)) => {
            true
        }
        Some(lease) if mistake == Some(Mistake::AgeOfRestoredLease) => lease.run_out,
        // The age of any other says nothing: it is waited for as one without a lease is.
        Some(lease) if is_present(lease.applied) => lease.run_out,
        Some(lease) => lease.run_out && gate.silent,
        None => !may_have_read || (gate.silent && !gate.leased),
    }
}
