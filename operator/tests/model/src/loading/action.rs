//! Actions that may happen to a gate and to what it loads.

use super::gate::{Gate, Load};
use super::mistake::Mistake;
use super::system::{PUBLISHED, REVOKED, System};
use crate::bounds::spend;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// The lease is renewed; a gate without a copy loads the directory then.
    Renew,
    /// The lease is renewed, and the copy is loaded again.
    Reload,
    /// A renewal gets no answer, and may come later.
    Delay,
    /// A delayed renewal comes.
    Arrive(usize),
    /// A load reads the key.
    Read,
    Complete,
    Fail,
    /// A round of the feed.
    Follow,
    /// The container ends.
    Crash,
    /// The container is started again.
    Start,
    Revoke,
    /// The operator checks the gates.
    Check,
    Tick,
}

pub const ALL: [Action; 14] = [
    Action::Renew,
    Action::Reload,
    Action::Delay,
    Action::Arrive(0),
    Action::Arrive(1),
    Action::Read,
    Action::Complete,
    Action::Fail,
    Action::Follow,
    Action::Crash,
    Action::Start,
    Action::Revoke,
    Action::Check,
    Action::Tick,
];

/// The system after an action; `None`: it cannot happen.
pub fn after(system: &System, action: Action, mistake: Option<Mistake>) -> Option<System> {
    let mut next = system.clone();
    let gate = system.gate;
    let is_idle = gate.runs && gate.load == Load::None;
    match action {
        Action::Renew => {
            spend(&mut next.left.renewals)?;
            (is_idle || gate.runs && mistake == Some(Mistake::RenewalDuringLoad)).then_some(())?;
            next.renew(gate.copy, mistake);
            if is_idle && gate.copy.is_none() {
                next.gate.load = Load::Begun;
            }
        }
        Action::Reload => {
            spend(&mut next.left.reloads)?;
            let copy = gate.copy.filter(|_| is_idle)?;
            let is_hidden = mistake == Some(Mistake::ReloadWithoutCopy);
            next.renew((!is_hidden).then_some(copy), mistake);
            next.gate.load = Load::Begun;
        }
        Action::Delay => {
            spend(&mut next.left.delays)?;
            is_idle.then_some(())?;
            let free = system.delayed.iter().position(Option::is_none)?;
            if gate.renewal.start == 0 {
                let latest = system.lease.map(|lease| lease.renewal).unwrap_or_default();
                next.gate.begin(latest.start.max(1));
            }
            next.delayed[free] = Some(next.send(gate.copy));
            next.delayed.sort();
        }
        Action::Arrive(at) => {
            let sent = next.delayed[at].take()?;
            next.delayed.sort();
            // Nobody waits for the answer any more.
            let _ = next.store(sent, mistake);
        }
        Action::Read => {
            (gate.load == Load::Begun).then_some(())?;
            next.gate.load = Load::Read(system.seq);
        }
        Action::Complete => {
            let Load::Read(seq) = gate.load else {
                return None;
            };
            next.gate.load = Load::None;
            next.gate.take(seq);
            if mistake == Some(Mistake::GraceFromLoad) {
                next.gate.last_renewal = Some(system.now);
            }
        }
        Action::Fail => next.gate.load = Load::None,
        Action::Follow => {
            gate.copy.filter(|_| is_idle)?;
            next.gate.take(system.seq);
        }
        Action::Crash => {
            spend(&mut next.left.crashes)?;
            gate.runs.then_some(())?;
            next.gate = Gate {
                before: gate.before + 1,
                ..Gate::default()
            };
        }
        Action::Start => {
            (!gate.runs).then_some(())?;
            next.gate = Gate::started(gate.before);
        }
        Action::Revoke => {
            (system.seq == PUBLISHED).then_some(())?;
            next.seq = REVOKED;
        }
        Action::Check => {
            // Afterwards nothing is waited for.
            (!system.is_told).then_some(())?;
            next.check(mistake);
        }
        Action::Tick => {
            spend(&mut next.left.ticks)?;
            next.now += 1;
        }
    }
    Some(next)
}
