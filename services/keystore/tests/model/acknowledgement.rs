//! Which gates a change waits for, and when each has let what was before it go.

use crate::gate::{Gate, Pod};
use crate::protocol::Mistake;
use crate::redis::{Applied, Meta};
use crate::system::System;

/// Whether every gate has come to a change; `Some(false)`: it must be written again, `None`: wait.
pub fn acknowledgement(
    system: &System,
    applied: Applied,
    mistake: Option<Mistake>,
) -> Option<bool> {
    let any = mistake == Some(Mistake::AcknowledgementOfAnyGeneration);
    let meta = system.store.meta;
    let verified = |meta: &Meta| match mistake {
        Some(Mistake::WriteToUnverified | Mistake::JudgeUnverified) => true,
        _ => meta.server == Some(system.server),
    };
    let now = meta.filter(verified).map(|meta| meta.generation);
    if now != Some(applied.generation) && !any {
        return Some(false);
    }
    let given = |gate: &Gate| has_come_to(gate, applied, now.unwrap_or_default(), any, mistake);
    system.gates.iter().all(given).then_some(true)
}

fn has_come_to(
    gate: &Gate,
    applied: Applied,
    now: u8,
    any: bool,
    mistake: Option<Mistake>,
) -> bool {
    let may_have_read = match mistake {
        Some(Mistake::NeverReadyHasReadNothing) => gate.pod == Pod::Ready,
        _ => gate.pod == Pod::Ready || gate.outlived,
    };
    match gate.lease {
        _ if gate.pod == Pod::Absent => true,
        Some(lease)
            if lease.applied.seq >= applied.seq && (any || lease.applied.generation == now) =>
        {
            true
        }
        Some(lease) if mistake == Some(Mistake::AgeOfRestoredLease) => lease.run_out,
        // The age of any other says nothing: it is waited for as one without a lease is.
        Some(lease) if lease.applied.generation == now => lease.run_out,
        Some(lease) => lease.run_out && gate.silent,
        None => !may_have_read || (gate.silent && !gate.leased),
    }
}
