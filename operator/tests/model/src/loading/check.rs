//! A check of the operator: `directories::gates`, for one pod that is not ready and runs since the last rebuild.

use water_keystore::{GateLease, Leases, MARGIN, Position};
use water_operator_core::absence::{Absence, Check};

use super::gate::GRACE;
use super::mistake::Mistake;
use super::system::{Lease, REVOKED, System};
use crate::records::{TICK, at};

/// The generation of the only directory that there is.
const GENERATION: u64 = 1;

impl System {
    /// Checks the gate, and reports the key as revoked if nothing is waited for.
    pub fn check(&mut self, mistake: Option<Mistake>) {
        let leases = self.leases();
        let earlier = self.known.take();
        let is_given = match (self.lease, leases.gates.first()) {
            (Some(stored), Some(lease)) if leases.is_outdated(lease) => {
                let now = TICK * u32::from(self.now);
                let is_granted = mistake == Some(Mistake::CopyTakenForGranted);
                let is_unseen = mistake == Some(Mistake::SilenceFromFirstCheck);
                let is_before = mistake == Some(Mistake::CheckBeforeChange);
                let check = Check {
                    renewed: (!is_unseen).then_some(lease.renewed),
                    without_copy: (!is_granted).then_some(stored.renewal),
                    seq: u64::from(if is_before { REVOKED } else { self.seq }),
                    now,
                };
                let known = Absence::after(earlier.as_ref(), check);
                self.known = Some(known);
                known.is_over(u64::from(REVOKED), lease.grace + MARGIN, now)
                    || mistake == Some(Mistake::OneCheck)
            }
            (_, Some(lease)) => {
                let change = Position {
                    generation: GENERATION,
                    seq: u64::from(REVOKED),
                };
                !leases.awaits(lease, &change)
            }
            // It has read nothing before it wrote its lease, which no Redis has lost.
            (_, None) => true,
        };
        self.is_told |= is_given && self.seq == REVOKED;
    }

    /// The lease as the operator reads it.
    fn leases(&self) -> Leases {
        let lease = |lease: Lease| GateLease {
            uid: String::new(),
            generation: lease.copy.map_or(0, |_| GENERATION),
            seq: lease.copy.map_or(0, u64::from),
            grace: TICK * u32::from(GRACE),
            renewed: at(lease.renewed),
            renewal: water_keystore::Renewal {
                start: lease.renewal.start.into(),
                count: lease.renewal.count.into(),
            },
        };
        Leases {
            now: at(self.now),
            generation: Some(GENERATION),
            seq: u64::from(self.seq),
            gates: self.lease.map(lease).into_iter().collect(),
        }
    }
}
