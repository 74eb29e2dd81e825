//! Actions that may happen: those of the gates and the leaders, those of owners, and faults.

use crate::cluster::{Admits, Secret};
use crate::records::KEYS;
use crate::system::System;
use crate::{gate, leading};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    Gate(usize, gate::Step),
    Leader(usize, leading::Step),
    /// A pass over a key, whole.
    Pass(usize, usize),
    /// A pass that halts before its write.
    Decide(usize, usize),
    /// The write of a halted pass.
    Write(usize),
    /// A pass over the WaterDataApi: it opens the directory where the Secret says, or names the Redis there.
    Open(usize),
    /// A pass over the WaterDataApi halts before it writes or opens.
    DecideNaming(usize),
    /// The pass over the WaterDataApi goes on.
    WriteNaming(usize),
    /// The rollout replaces a gate that reads the other Redis.
    Roll(usize),
    /// A check of the gates that are waited for.
    Look(usize, usize),
    Create(usize),
    /// Asks for another key.
    Rotate(usize),
    /// Suspends or resumes.
    Suspend(usize),
    Delete(usize),
    DeleteSecret(usize),
    EditSecret(usize),
    /// Somebody puts the Secret with the key before back.
    RestoreSecret(usize),
    /// Somebody else's Secret takes the name.
    TakeSecret(usize),
    /// Somebody else's Secret goes.
    FreeSecret(usize),
    /// Somebody writes the name of a WaterDataApi that does not exist into the status.
    Misname(usize),
    Admit(Admits),
    /// The API server refuses the writes of the ApiKey, or takes them again.
    Refuse(usize),
    DeleteApi,
    CreateApi,
    /// The Secret names the other Redis.
    Move,
    Start(usize),
    Stop(usize),
    /// The pod of a WaterDataApi that is gone is collected.
    Collect(usize),
    /// The leader halts until its Lease has run out.
    Pause(usize),
    /// The leader's watches halt.
    Lag(usize),
    /// The halted write gets no answer, and may come later.
    Delay(usize),
    /// The delayed write comes.
    Arrive,
    Cut(usize),
    Heal(usize),
    Tick,
    /// Redis' data as they are can come back later: a dump is written, or a replica is up to date.
    Save,
    Wipe,
    /// Redis restarts with an old dump, or a replica that lacks the last writes is promoted. The leases
    /// come back as they were then, and so seem to have run out.
    GoBack,
}

/// Actions of the system by itself; `has_moves`: the Secret may name another Redis.
pub fn of_the_system(has_moves: bool, actions: &mut Vec<Action>) {
    for number in 0..2 {
        actions.extend(leading::STEPS.map(|step| Action::Leader(number, step)));
        actions.push(Action::Write(number));
        actions.push(Action::Collect(number));
        actions.extend((0..KEYS).map(|key| Action::Pass(number, key)));
        actions.extend(gate::STEPS.map(|step| Action::Gate(number, step)));
        actions.extend((0..KEYS).map(|key| Action::Look(number, key)));
    }
    actions.push(Action::Arrive);
    if has_moves {
        let of_either = [Action::Open, Action::WriteNaming, Action::Roll];
        actions.extend(
            [0, 1]
                .iter()
                .flat_map(|number| of_either.map(|of| of(*number))),
        );
    }
}

/// Actions of owners and faults, where the bounds leave any of them.
pub fn of_the_world(system: &System, actions: &mut Vec<Action>) {
    let left = &system.left;
    let mut add = |left: u8, some: &[Action]| {
        if left > 0 {
            actions.extend(some);
        }
    };
    for number in 0..2 {
        add(left.pauses, &[Action::Pause(number)]);
        add(left.lags, &[Action::Lag(number)]);
        add(left.delays, &[Action::Delay(number)]);
        add(left.cuts, &[Action::Cut(number)]);
        add(left.starts, &[Action::Start(number), Action::Stop(number)]);
        add(u8::from(system.gates[number].cut), &[Action::Heal(number)]);
        add(left.slow, &[0, 1].map(|key| Action::Decide(number, key)));
        add(left.halts, &[Action::DecideNaming(number)]);
    }
    for key in 0..KEYS {
        add(1, &[Action::Create(key), Action::Delete(key)]);
        add(left.rotations, &[Action::Rotate(key)]);
        add(left.suspensions, &[Action::Suspend(key)]);
        add(left.refusals, &[Action::Refuse(key)]);
        add(
            left.hands,
            &[
                Action::DeleteSecret(key),
                Action::EditSecret(key),
                Action::RestoreSecret(key),
            ],
        );
        add(left.foreign, &[Action::TakeSecret(key)]);
        add(left.misnames, &[Action::Misname(key)]);
        let is_foreign = system.keys[key].secret == Secret::Foreign;
        add(u8::from(is_foreign), &[Action::FreeSecret(key)]);
    }
    let admits = [Admits::Yes, Admits::Hindered, Admits::No];
    add(left.hindrances, &admits.map(Action::Admit));
    add(left.deletions, &[Action::DeleteApi]);
    add(left.moves, &[Action::Move]);
    add(u8::from(!system.exists), &[Action::CreateApi]);
    add(left.ticks, &[Action::Tick]);
    add(left.losses, &[Action::Save, Action::Wipe, Action::GoBack]);
}
