//! A gate: its pod, its lease, its copy, and what it may do next.

use crate::mistake::Mistake;
use crate::records::Records;
use crate::store::{Applied, Meta, Store};

/// State of the pod at the API server.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Pod {
    #[default]
    Absent,
    NeverReady,
    Ready,
}

/// A gate's lease as it is stored.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lease {
    pub applied: Applied,
    /// Whether its time of renewal is longer ago than the grace and the margin.
    pub run_out: bool,
}

/// Copy that a gate serves from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Copy {
    pub at: Applied,
    pub records: Records,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gate {
    pub pod: Pod,
    /// Redis that it reads.
    pub store: u8,
    /// Whether it was started before the directory was last rebuilt, and has not been ready yet.
    pub outlived: bool,
    /// Whether it has written its lease since it started, or since it fell silent.
    pub leased: bool,
    pub copy: Option<Copy>,
    /// Whether Redis is out of its reach.
    pub cut: bool,
    /// Whether its last renewal is longer ago than its grace: every request is answered 503.
    pub silent: bool,
    /// Entry in `gates`.
    pub lease: Option<Lease>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    Renew,
    /// A round of the feed, or a load where that cannot be continued.
    Read,
    BecomeReady,
    /// The grace passes without a renewal, and after it the margin.
    RunOut,
}

pub const STEPS: [Step; 4] = [Step::Renew, Step::Read, Step::BecomeReady, Step::RunOut];

impl Gate {
    /// A gate that has just started and reads this Redis.
    pub fn started(store: u8) -> Self {
        Self {
            pod: Pod::NeverReady,
            store,
            ..Self::default()
        }
    }

    /// Positions of its lease and of its copy.
    pub fn each_applied(&mut self, mut visit: impl FnMut(&mut Applied)) {
        let lease = self.lease.iter_mut().map(|lease| &mut lease.applied);
        lease.for_each(&mut visit);
        self.copy.iter_mut().for_each(|copy| visit(&mut copy.at));
    }

    /// A request that reaches it is answered from the copy.
    pub fn serving(&self) -> Option<Copy> {
        self.copy.filter(|_| self.pod == Pod::Ready && !self.silent)
    }

    /// Writes the lease, which acknowledges the copy. That of a change is written with the change:
    /// a later one would only make the operator wait longer.
    fn renew(&mut self) {
        self.leased = true;
        self.lease = Some(Lease {
            applied: self.copy.map_or(Applied::default(), |copy| copy.at),
            run_out: false,
        });
    }
}

/// The gate after a step; `None`: there is nothing to do.
pub fn step(
    gate: Gate,
    step: Step,
    store: &Store,
    server: bool,
    mistake: Option<Mistake>,
) -> Option<Gate> {
    let mut next = gate;
    match step {
        Step::Renew => {
            let too_early = match mistake {
                Some(Mistake::LoadBeforeLease) => gate.copy.is_none(),
                Some(Mistake::ReadBeforeRenewal) => gate.silent && !gate.leased,
                _ => false,
            };
            if gate.cut || too_early {
                return None;
            }
            next.renew();
            if let Some(Mistake::ServeOnRenewal | Mistake::ReadBeforeRenewal) = mistake {
                next.silent = false;
            }
        }
        Step::Read => {
            let early = match mistake {
                Some(Mistake::LoadBeforeLease) => gate.copy.is_none(),
                Some(Mistake::ReadBeforeRenewal) => gate.silent,
                _ => false,
            };
            if gate.cut || !(gate.leased || early) {
                return None;
            }
            let meta = usable(store, server, mistake)?;
            if gate.silent || gate.copy.is_none_or(|copy| differs(meta, copy.at, mistake)) {
                next.copy = Some(Copy {
                    at: meta.position(),
                    records: store.records,
                });
            }
            if gate.silent && early {
                // The renewal that follows is taken to be enough.
                next.leased = true;
            } else {
                next.silent = false;
                if gate.leased {
                    next.renew();
                }
            }
        }
        Step::BecomeReady => {
            gate.copy?;
            next.pod = Pod::Ready;
            next.outlived = false;
        }
        Step::RunOut => {
            if !gate.cut {
                return None;
            }
            next.silent = true;
            next.leased = false;
            next.lease = gate.lease.map(|lease| Lease {
                run_out: true,
                ..lease
            });
        }
    }
    (gate.pod != Pod::Absent && next != gate).then_some(next)
}

/// The directory, if a gate may apply what it says.
fn usable(store: &Store, server: bool, mistake: Option<Mistake>) -> Option<Meta> {
    let verified = |meta: &Meta| mistake == Some(Mistake::SeqAlone) || meta.server == Some(server);
    store.meta.filter(|meta| meta.complete && verified(meta))
}

/// Whether the copy at this position is another than what Redis holds.
fn differs(meta: Meta, at: Applied, mistake: Option<Mistake>) -> bool {
    let rebuilt = mistake != Some(Mistake::SeqAlone) && meta.generation != at.generation;
    rebuilt || meta.seq != at.seq
}
