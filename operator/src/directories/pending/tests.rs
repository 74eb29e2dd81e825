//! Tests of the way in which declarations enter into force.

use std::time::Duration;

use water_domain::Timestamp;
use water_keystore::{GateLease, Leases, Renewal};

use super::super::gates::{GatePod, MissingLeases};
use super::*;

fn owner() -> Owner {
    Owner {
        uid: "u".into(),
        namespace: "water".into(),
        name: "acme".into(),
    }
}

fn id(generation: u64, number: u64) -> DeclarationId {
    DeclarationId {
        generation,
        number,
        is_last: false,
    }
}

fn at(generation: u64, seq: u64) -> Position {
    Position { generation, seq }
}

/// A gate that has applied `seq` of `generation`, which is the directory's.
fn gate(generation: u64, seq: u64) -> Gates {
    gate_beside(generation, generation, seq)
}

/// A gate that has applied `seq` of `generation`, while the directory has that of `present`.
fn gate_beside(present: u64, generation: u64, seq: u64) -> Gates {
    let now = Timestamp::from_millis(1_000_000).unwrap();
    let lease = GateLease {
        uid: "g".into(),
        generation,
        seq,
        grace: Duration::from_secs(120),
        renewed: now,
        renewal: Renewal::default(),
    };
    Gates {
        leases: Leases {
            now,
            generation: Some(present),
            seq,
            gates: vec![lease],
        },
        pods: vec![GatePod {
            name: "gate-0".into(),
            uid: "g".into(),
            may_serve: true,
            running: None,
            is_elsewhere: false,
        }],
        missed: MissingLeases::default(),
    }
}

/// Declaration 1 is waited for, which was made at `applied`.
fn waiting(applied: Position) -> PendingDeclarations {
    let pending = PendingDeclarations::default();
    declare(&pending, 1, applied);
    pending
}

fn declare(pending: &PendingDeclarations, number: u64, applied: Position) {
    let id = id(applied.generation, number);
    let state = pending.begin(&owner(), id, applied, Instant::now());
    assert!(matches!(state, DeclarationState::Awaiting { gates, .. } if gates.pods.is_empty()));
}

fn look(pending: &PendingDeclarations, gates: &Gates) -> usize {
    pending
        .judge(pending.awaited(), gates, Instant::now())
        .len()
}

#[test]
fn a_declaration_is_in_force_once_every_gate_has_come_to_it() {
    let pending = waiting(at(7, 10));
    assert_eq!(look(&pending, &gate(7, 9)), 0);
    let state = pending.state("u", id(7, 1)).unwrap();
    assert!(
        matches!(state, DeclarationState::Awaiting { gates, .. } if gates.pods.contains("gate-0"))
    );
    assert_eq!(look(&pending, &gate(7, 10)), 1);
    assert_eq!(
        pending.state("u", id(7, 1)),
        Some(DeclarationState::InForce)
    );
    assert!(!pending.is_anybody_waiting());
}

#[test]
fn others_later_changes_do_not_count() {
    let pending = waiting(at(7, 10));
    pending.begin(&owner(), id(7, 1), at(7, 99), Instant::now());
    assert_eq!(look(&pending, &gate(7, 10)), 1);
}

#[test]
fn after_a_rebuild_the_gates_are_asked_again() {
    let pending = waiting(at(7, 10));
    assert_eq!(look(&pending, &gate(7, 10)), 1);
    assert_eq!(pending.state("u", id(8, 1)), None);
    declare(&pending, 1, at(8, 20));
    assert_eq!(look(&pending, &gate_beside(8, 7, 99)), 0);
    assert_eq!(look(&pending, &gate(8, 20)), 1);
}

#[test]
fn another_declaration_of_the_same_key_is_waited_for_anew() {
    let pending = waiting(at(7, 10));
    assert_eq!(look(&pending, &gate(7, 10)), 1);
    declare(&pending, 2, at(7, 11));
    assert_eq!(pending.state("u", id(7, 1)), None);
    assert!(pending.is_anybody_waiting());
}

#[test]
fn a_declaration_that_was_replaced_while_the_gates_were_looked_at_is_not_judged() {
    let pending = waiting(at(7, 10));
    let awaited = pending.awaited();
    declare(&pending, 2, at(7, 11));
    assert_eq!(
        pending.judge(awaited, &gate(7, 99), Instant::now()).len(),
        0
    );
}

#[test]
fn what_is_gone_is_not_waited_for() {
    let pending = waiting(at(7, 10));
    pending.retain(&HashSet::from(["u".to_owned()]));
    assert!(pending.is_anybody_waiting());
    pending.retain(&HashSet::new());
    assert!(!pending.is_anybody_waiting());
}
