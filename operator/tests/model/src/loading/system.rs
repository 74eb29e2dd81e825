//! State of one gate, its lease in Redis, and the operator that waits for it.

use std::time::Duration;

use water_operator_core::absence::Absence;

use super::gate::{Gate, Load, Renewal};
use super::mistake::Mistake;

/// The directory's first change, which publishes the key.
pub const PUBLISHED: u8 = 1;
/// The change that revokes it.
pub const REVOKED: u8 = 2;

/// A lease as it is sent and stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lease {
    pub renewal: Renewal,
    /// The last change in the copy that is served; `None` without one.
    pub copy: Option<u8>,
    /// Tick at which it was stored.
    pub renewed: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct System {
    pub gate: Gate,
    pub lease: Option<Lease>,
    /// Renewals of which no answer came, and that come late or never.
    pub delayed: [Option<Lease>; 2],
    /// The directory's last change.
    pub seq: u8,
    /// Knowledge that the operator has of a gate whose lease acknowledges nothing.
    pub known: Option<Absence<Renewal, Duration>>,
    /// Whether the key is reported as revoked.
    pub is_told: bool,
    /// The time, in ticks.
    pub now: u8,
    pub left: Left,
}

/// Number of times that each thing may happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Left {
    /// The lease is renewed.
    pub renewals: u8,
    /// A renewal gets no answer, and comes later or never.
    pub delays: u8,
    /// The container ends, and may be started again.
    pub crashes: u8,
    /// A copy is loaded again.
    pub reloads: u8,
    /// Time passes.
    pub ticks: u8,
}

impl System {
    /// State with a gate that serves the key.
    pub fn serving(left: Left) -> Self {
        let renewal = Renewal { start: 2, count: 1 };
        Self {
            gate: Gate {
                renewal,
                copy: Some(PUBLISHED),
                last_renewal: Some(0),
                ..Gate::started(0)
            },
            lease: Some(Lease {
                renewal,
                copy: Some(PUBLISHED),
                renewed: 0,
            }),
            ..Self::starting(left)
        }
    }

    /// State with a gate that has just started.
    pub fn starting(left: Left) -> Self {
        Self {
            gate: Gate::started(0),
            lease: None,
            delayed: [None; 2],
            seq: PUBLISHED,
            known: None,
            is_told: false,
            now: 0,
            left,
        }
    }

    /// The state with a gate that runs and whose load, if there was one, has failed.
    pub fn running(&self) -> Self {
        let gate = if self.gate.runs {
            Gate {
                load: Load::None,
                ..self.gate
            }
        } else {
            Gate::started(self.gate.before)
        };
        Self {
            gate,
            ..self.clone()
        }
    }

    /// Whether the gate accepts a key that is revoked.
    pub fn accepts(&self) -> bool {
        let copy = self.gate.copy.filter(|_| self.gate.is_in_time(self.now));
        copy.is_some_and(|copy| copy < REVOKED)
    }

    /// Renews the lease with this copy. The first try of a process is refused: its answer says when the process begins.
    pub fn renew(&mut self, copy: Option<u8>, mistake: Option<Mistake>) {
        for _ in 0..2 {
            let sent = self.send(copy);
            match self.store(sent, mistake) {
                Ok(()) => return self.gate.renewed(self.now),
                Err(exceed) => self.gate.begin(exceed),
            }
        }
    }

    /// Returns the next renewal.
    pub fn send(&mut self, copy: Option<u8>) -> Lease {
        self.gate.renewal.count += 1;
        Lease {
            renewal: self.gate.renewal,
            copy,
            renewed: 0,
        }
    }

    /// Stores a lease; else the start that the process must exceed.
    pub fn store(&mut self, sent: Lease, mistake: Option<Mistake>) -> Result<(), u8> {
        let latest = self.lease.map(|lease| lease.renewal).unwrap_or_default();
        let is_same = sent.renewal.start == latest.start;
        let is_overtaken = sent.renewal <= latest
            && match mistake {
                Some(Mistake::OvertakenRenewal) => !is_same,
                Some(Mistake::RenewalOfEndedProcess) => is_same,
                _ => true,
            };
        if sent.renewal.start == 0 || is_overtaken {
            return Err(latest.start.max(1));
        }
        self.lease = Some(Lease {
            renewed: self.now,
            ..sent
        });
        Ok(())
    }
}
