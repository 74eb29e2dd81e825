//! How changes come to be in force, and what a rebuild carries meanwhile.

use std::time::Duration;

use water_domain::Timestamp;
use water_keystore::{GateLease, GateMode, KeyState, Leases, Record, Removal};

use super::super::gates::{GatePod, Missed};
use super::*;

fn owner() -> Owner {
    Owner {
        uid: "u".into(),
        namespace: "water".into(),
        name: "acme".into(),
    }
}

fn hash(byte: u8) -> KeyHash {
    KeyHash::from_bytes([byte; 32])
}

fn record() -> Record {
    Record {
        key_id: "4fGh7Kq2ZpX1".parse().unwrap(),
        account: "acme".parse().unwrap(),
        plan: "Enterprise".parse().unwrap(),
        state: KeyState::Active,
        not_before: None,
        expires: None,
        retires: None,
        revision: 0,
    }
}

fn put(byte: u8) -> Change {
    Change::Put {
        hash: hash(byte),
        record: record(),
        owner: owner(),
        reinstate: false,
    }
}

fn remove(byte: u8) -> Change {
    Change::Remove {
        hash: hash(byte),
        owner: owner(),
        removal: Removal::Revoke,
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
        mode: GateMode::Serving,
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
        }],
        missed: Missed::default(),
    }
}

/// Waits with one change written at `applied`.
fn waiting(changes: &[Change], applied: Applied) -> Waits {
    let waits = Waits::default();
    waits.announce(&owner(), changes, Instant::now());
    let standing = waits.confirm(&owner(), applied, Instant::now());
    assert!(matches!(standing, Standing::Awaiting { pods, .. } if pods.is_empty()));
    waits
}

fn look(waits: &Waits, gates: &Gates) -> usize {
    waits.judge(waits.pending(), gates, Instant::now()).len()
}

#[test]
fn a_change_is_in_force_once_every_gate_has_come_to_it() {
    let waits = waiting(&[put(1)], at(7, 10));
    assert_eq!(look(&waits, &gate(7, 9)), 0);
    let standing = waits.confirm(&owner(), at(7, 12), Instant::now());
    assert!(matches!(standing, Standing::Awaiting { pods, .. } if pods.contains("gate-0")));
    assert_eq!(
        look(&waits, &gate(7, 10)),
        1,
        "others' later changes do not count"
    );
    assert_eq!(
        waits.confirm(&owner(), at(7, 12), Instant::now()),
        Standing::InForce
    );
    assert!(!waits.is_anybody_waiting());
}

#[test]
fn after_a_rebuild_the_gates_are_asked_again() {
    let waits = waiting(&[put(1)], at(7, 10));
    assert_eq!(look(&waits, &gate(7, 10)), 1);
    assert_ne!(
        waits.confirm(&owner(), at(8, 20), Instant::now()),
        Standing::InForce
    );
    assert_eq!(look(&waits, &gate_beside(8, 7, 99)), 0);
    assert_eq!(look(&waits, &gate(8, 20)), 1);
}

#[test]
fn another_change_of_the_same_key_is_waited_for_anew() {
    let waits = waiting(&[put(1)], at(7, 10));
    assert_eq!(look(&waits, &gate(7, 10)), 1);
    waits.announce(&owner(), &[remove(1)], Instant::now());
    assert!(!waits.is_anybody_waiting(), "it is not written yet");
    assert_ne!(
        waits.confirm(&owner(), at(7, 11), Instant::now()),
        Standing::InForce
    );
}

#[test]
fn a_change_that_was_replaced_while_the_gates_were_looked_at_is_not_judged() {
    let waits = waiting(&[put(1)], at(7, 10));
    let pending = waits.pending();
    waits.announce(&owner(), &[remove(1)], Instant::now());
    waits.confirm(&owner(), at(7, 11), Instant::now());
    assert_eq!(waits.judge(pending, &gate(7, 99), Instant::now()).len(), 0);
}

#[test]
fn a_rebuild_carries_what_was_announced_and_not_what_was_taken_away() {
    let waits = Waits::default();
    waits.announce(&owner(), &[remove(1), put(2)], Instant::now());
    let entry = |byte| Entry {
        hash: hash(byte),
        record: record(),
        owner: owner(),
    };
    let declared = Contents {
        entries: vec![entry(1), entry(3)],
        plans: Vec::new(),
    };
    let carried = waits.carry_into(declared).entries;
    let hashes: Vec<KeyHash> = carried.iter().map(|entry| entry.hash).collect();
    assert_eq!(hashes, [hash(2), hash(3)]);
    waits.forget(&owner());
    assert_eq!(waits.carry_into(Contents::default()), Contents::default());
}
