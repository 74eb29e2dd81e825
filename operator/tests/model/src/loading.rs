//! A gate that loads the directory, and a revocation that waits for it, explored as the protocol is: renewals that
//! come late, containers that are restarted, copies that are loaded again, and time.
//!
//! One gate and one key of a directory that loses nothing. The operator's own rules say whether the gate is waited for:
//! `water_operator_core::absence` and `water_keystore::Leases`. The gate follows the replica of `services/keystore`,
//! and Redis follows `lease.lua`.

mod action;
mod check;
mod explorations;
mod gate;
mod mistake;
mod system;

use stateright::{Model, Property};

use action::{Action, after};
use gate::Gate;
use mistake::Mistake;
use system::{Left, REVOKED, System};

/// Ticks after which a gate that is silent is not waited for any more: more than its grace and the margin.
const SILENT: u8 = gate::GRACE + 1;
/// Renewals with which a gate that never completes a load acknowledges a change: one before a check, and one after.
const RENEWALS: usize = 2;

pub struct Loading {
    pub left: Left,
    pub mistake: Option<Mistake>,
}

impl Model for Loading {
    type State = System;
    type Action = Action;

    fn init_states(&self) -> Vec<System> {
        vec![System::serving(self.left), System::starting(self.left)]
    }

    fn actions(&self, _: &System, actions: &mut Vec<Action>) {
        actions.extend(action::ALL);
    }

    fn next_state(&self, system: &System, action: Action) -> Option<System> {
        after(system, action, self.mistake).filter(|next| next != system)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "no key is reported as revoked while a gate accepts it",
                |_, system: &System| !system.is_told || !system.accepts(),
            ),
            Property::always(
                "what is waited for ends",
                |model: &Self, system: &System| {
                    let is_asked = model.mistake.is_none_or(Mistake::keeps_waiting);
                    !is_asked || model.ends(system)
                },
            ),
            Property::sometimes(
                "a gate without a copy acknowledges before any time has passed",
                |_, system: &System| system.is_told && system.known.is_some() && system.now == 0,
            ),
            Property::sometimes("the gate has read the change", |_, system: &System| {
                system.is_told && system.gate.copy == Some(REVOKED)
            }),
        ]
    }
}

impl Loading {
    /// Whether the wait for a revocation ends, whatever becomes of the gate from now on.
    fn ends(&self, system: &System) -> bool {
        system.seq < REVOKED
            || system.is_told
            || self.ends_if_it_crashes(system)
                && self.ends_if_it_loads(system)
                && (system.gate.copy.is_some() || self.ends_if_no_load_completes(system))
    }

    /// Whether it ends once the gate has been silent for long enough.
    fn ends_if_it_crashes(&self, system: &System) -> bool {
        let mut next = System {
            gate: Gate::default(),
            ..system.clone()
        };
        next.check(self.mistake);
        for _ in 0..SILENT {
            next.now += 1;
            next.check(self.mistake);
        }
        next.is_told
    }

    /// Whether it ends before any time has passed if each load fails.
    fn ends_if_no_load_completes(&self, system: &System) -> bool {
        let mut next = system.running();
        for _ in 0..RENEWALS {
            next.renew(None, self.mistake);
            next.check(self.mistake);
        }
        next.is_told
    }

    /// Whether it ends with the acknowledgement of a gate that loads the directory, or follows it.
    fn ends_if_it_loads(&self, system: &System) -> bool {
        let mut next = system.running();
        next.renew(next.gate.copy, self.mistake);
        next.gate.take(next.seq);
        next.renew(next.gate.copy, self.mistake);
        next.check(self.mistake);
        next.is_told
    }
}
