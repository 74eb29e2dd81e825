//! How declarations come to be in force.

use std::time::Duration;

use water_domain::Timestamp;
use water_keystore::{GateLease, Leases};

use super::super::gates::{GatePod, Missed};
use super::*;

fn owner() -> Owner {
    Owner {
        uid: "u".into(),
        namespace: "water".into(),
        name: "acme".into(),
    }
}

fn mark(generation: u64, number: u64) -> Mark {
    Mark {
        generation,
        number,
        is_last: false,
    }
}

fn at(generation: u64, seq: u64) -> Applied {
    Applied { generation, seq }
}

/// One gate that has come to `seq` of `generation`, which is the directory's.
fn gate(generation: u64, seq: u64) -> Gates {
    gate_beside(generation, generation, seq)
}

/// One gate that has come to `seq` of `generation`, while the directory has that of `present`.
fn gate_beside(present: u64, generation: u64, seq: u64) -> Gates {
    let now = Timestamp::from_millis(1_000_000).unwrap();
    let lease = GateLease {
        pod: "gate-0".into(),
        uid: "g".into(),
        generation,
        seq,
        grace: Duration::from_secs(120),
        renewed: now,
    };
    Gates {
        leases: Leases {
            now,
            generation: Some(present),
            gates: vec![lease],
        },
        pods: vec![GatePod {
            name: "gate-0".into(),
            uid: "g".into(),
            may_serve: true,
            running: None,
            is_elsewhere: false,
        }],
        missed: Missed::default(),
    }
}

/// Waits with number 1 declared at `applied`.
fn waiting(applied: Applied) -> Waits {
    let waits = Waits::default();
    declare(&waits, 1, applied);
    waits
}

fn declare(waits: &Waits, number: u64, applied: Applied) {
    let mark = mark(applied.generation, number);
    let standing = waits.begin(&owner(), mark, applied, Instant::now());
    assert!(matches!(standing, Standing::Awaiting { gates, .. } if gates.pods.is_empty()));
}

fn look(waits: &Waits, gates: &Gates) -> usize {
    waits.judge(waits.pending(), gates, Instant::now()).len()
}

#[test]
fn a_declaration_is_in_force_once_every_gate_has_come_to_it() {
    let waits = waiting(at(7, 10));
    assert_eq!(look(&waits, &gate(7, 9)), 0);
    let standing = waits.standing("u", mark(7, 1)).unwrap();
    assert!(matches!(standing, Standing::Awaiting { gates, .. } if gates.pods.contains("gate-0")));
    assert_eq!(look(&waits, &gate(7, 10)), 1);
    assert_eq!(waits.standing("u", mark(7, 1)), Some(Standing::InForce));
    assert!(!waits.is_anybody_waiting());
}

#[test]
fn others_later_changes_do_not_count() {
    let waits = waiting(at(7, 10));
    waits.begin(&owner(), mark(7, 1), at(7, 99), Instant::now());
    assert_eq!(look(&waits, &gate(7, 10)), 1);
}

#[test]
fn after_a_rebuild_the_gates_are_asked_again() {
    let waits = waiting(at(7, 10));
    assert_eq!(look(&waits, &gate(7, 10)), 1);
    assert_eq!(waits.standing("u", mark(8, 1)), None);
    declare(&waits, 1, at(8, 20));
    assert_eq!(look(&waits, &gate_beside(8, 7, 99)), 0);
    assert_eq!(look(&waits, &gate(8, 20)), 1);
}

#[test]
fn another_declaration_of_the_same_key_is_waited_for_anew() {
    let waits = waiting(at(7, 10));
    assert_eq!(look(&waits, &gate(7, 10)), 1);
    declare(&waits, 2, at(7, 11));
    assert_eq!(waits.standing("u", mark(7, 1)), None);
    assert!(waits.is_anybody_waiting());
}

#[test]
fn a_declaration_that_was_replaced_while_the_gates_were_looked_at_is_not_judged() {
    let waits = waiting(at(7, 10));
    let pending = waits.pending();
    declare(&waits, 2, at(7, 11));
    assert_eq!(waits.judge(pending, &gate(7, 99), Instant::now()).len(), 0);
}

#[test]
fn what_is_gone_is_not_waited_for() {
    let waits = waiting(at(7, 10));
    waits.retain(&HashSet::from(["u".to_owned()]));
    assert!(waits.is_anybody_waiting());
    waits.retain(&HashSet::new());
    assert!(!waits.is_anybody_waiting());
}
