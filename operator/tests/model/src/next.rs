//! Results of each action.

use crate::action::Action;
use crate::bounds::{Bounds, spend};
use crate::gate::{self, Gate, Lease, Pod};
use crate::leader::{Cache, Claim, Write};
use crate::mistake::Mistake;
use crate::pass::{decided, look};
use crate::store::Store;
use crate::system::System;
use crate::write::written;
use crate::{leading, naming, owner};

/// The system after an action; `None`: it cannot happen, or changes nothing.
pub fn after(
    system: &System,
    action: Action,
    bounds: &Bounds,
    mistake: Option<Mistake>,
) -> Option<System> {
    let mut next = system.clone();
    match action {
        Action::Gate(number, step) => {
            let gate = system.gates[number];
            let (store, server) = (system.store(gate.store), system.server(gate.store));
            next.gates[number] = gate::step(gate, step, store, server, mistake)?;
        }
        Action::Leader(number, step) => return leading::step(system, number, step, mistake),
        Action::Pass(number, key) => {
            // One that has lost the Lease notices soon.
            system.leaders[number].holds.then_some(())?;
            let (after, hand) = decided(system, number, key, bounds.hashes, mistake)?;
            let done = hand.map(|hand| written(&after, &hand, Some(number), mistake));
            return Some(done.unwrap_or(after)).filter(|next| next != system);
        }
        Action::Decide(number, key) => {
            if system.leaders[number].hand.is_some() {
                return None;
            }
            let (after, hand) = decided(system, number, key, bounds.hashes, mistake)?;
            next = after;
            spend(&mut next.left.slow)?;
            next.leaders[number].hand = Some(hand?);
        }
        Action::Write(number) => {
            let hand = next.leaders[number].hand.take()?;
            let leads = system.leaders[number].leading;
            return Some(written(&next, &hand, leads.then_some(number), mistake));
        }
        Action::Open(number) => {
            system.leaders[number].holds.then_some(())?;
            let naming = naming::decided(system, number, mistake)?;
            let done = naming::done(system, naming, Some(number), mistake);
            return Some(done).filter(|next| next != system);
        }
        Action::DecideNaming(number) => {
            spend(&mut next.left.halts)?;
            next.leaders[number].naming = Some(naming::decided(system, number, mistake)?);
        }
        Action::WriteNaming(number) => {
            let naming = next.leaders[number].naming.take()?;
            let leads = system.leaders[number].leading;
            return Some(naming::done(
                &next,
                naming,
                leads.then_some(number),
                mistake,
            ));
        }
        Action::Roll(number) => {
            let is_claimed = system.leaders.iter().any(|leader| {
                leader.holds && leader.claim == Claim::Open && leader.open == Some(system.named)
            });
            let gate = &mut next.gates[number];
            let is_elsewhere = gate.pod != Pod::Absent && gate.store != system.named;
            (is_claimed && is_elsewhere).then_some(())?;
            *gate = Gate::started(system.named);
        }
        Action::Look(number, key) => return look(system, number, key, mistake),
        Action::Pause(number) => {
            spend(&mut next.left.pauses)?;
            let leader = &mut next.leaders[number];
            leader.holds.then_some(())?;
            leader.holds = false;
        }
        Action::Lag(number) => {
            spend(&mut next.left.lags)?;
            let leader = &mut next.leaders[number];
            (leader.leading && leader.cache.is_none()).then_some(())?;
            leader.cache = Some(Cache {
                objects: system.keys.map(|key| key.object),
                secrets: system.keys.map(|key| key.secret),
                names: system.names,
            });
        }
        Action::Delay(number) => {
            spend(&mut next.left.delays)?;
            let leader = &mut next.leaders[number];
            (system.delayed.is_none() && leader.leading).then_some(())?;
            let hand = leader.hand.take()?;
            next.delayed = Some(hand);
            // Whether a declaration was carried out is not known: its term is given up.
            let is_doubted = match hand.write {
                Write::Declare(wanted) => leader.claim == Claim::Open && leader.term == wanted.term,
                _ => false,
            };
            if is_doubted && mistake != Some(Mistake::DelayedUnderSameTerm) {
                leader.give_up_claim();
            }
        }
        Action::Arrive => {
            let hand = next.delayed.take()?;
            return Some(written(&next, &hand, None, mistake));
        }
        Action::Tick => {
            spend(&mut next.left.ticks)?;
            next.now += 1;
        }
        Action::Start(number) => {
            spend(&mut next.left.starts)?;
            let meta = system.store(system.named).meta;
            let is_claimed = meta.is_none_or(|meta| meta.api == system.api);
            let may = system.exists && (is_claimed || mistake == Some(Mistake::GatesBeforeClaim));
            let gate = &mut next.gates[number];
            (may && gate.pod == Pod::Absent).then_some(())?;
            *gate = Gate::started(system.named);
        }
        Action::Stop(number) => {
            spend(&mut next.left.starts)?;
            stop(&mut next.gates[number])?;
        }
        Action::Collect(number) => {
            (!system.exists).then_some(())?;
            stop(&mut next.gates[number])?;
        }
        Action::Cut(number) => {
            spend(&mut next.left.cuts)?;
            let gate = &mut next.gates[number];
            (gate.pod != Pod::Absent && !gate.cut).then_some(())?;
            gate.cut = true;
        }
        Action::Heal(number) => {
            let gate = &mut next.gates[number];
            gate.cut.then_some(())?;
            gate.cut = false;
        }
        Action::Save => {
            (system.left.losses > 0 && system.saved.is_none()).then_some(())?;
            system.stores[0].meta?;
            next.saved = Some(system.stores[0]);
        }
        Action::Wipe => {
            spend(&mut next.left.losses)?;
            system.stores[0].meta?;
            next.stores[0] = Store::default();
            next.lose(|_| None);
        }
        Action::GoBack => {
            spend(&mut next.left.losses)?;
            next.stores[0] = system.saved?;
            next.server = !system.server;
            let meta = next.stores[0].meta?;
            next.lose(|lease| {
                Some(Lease {
                    applied: lease.applied.min(meta.position()),
                    run_out: true,
                })
            });
        }
        _ => return owner::after(next, action, bounds),
    }
    Some(next)
}

fn stop(gate: &mut Gate) -> Option<()> {
    (gate.pod != Pod::Absent).then_some(())?;
    *gate = Gate::default();
    Some(())
}
