//! The protocol of the key directory, explored exhaustively within stated bounds.
//!
//! A model of `gate.md`'s rules and not of the code: two leaders of the operator that may be paused
//! and go on, two gates that start, stop and are cut off, one Redis that is wiped or goes back to what
//! it held before, and keys that are created, rotated and deleted. What it leaves out: plans, watches
//! that lag, Redis out of the operator's reach (a pause is no worse), and a primary that goes on
//! answering after another was promoted (`min-replicas-to-write` forbids it).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod acknowledgement;
mod canonical;
mod gate;
mod operator;
mod protocol;
mod redis;
mod system;

use stateright::{Checker, HasDiscoveries, Model};

use protocol::{Bounds, Mistake};
use system::Directory;

/// One of everything; each exploration says what it has besides.
const BASE: Bounds = Bounds {
    keys: 1,
    hashes: 1,
    losses: 0,
    pauses: 0,
    cuts: 0,
    starts: 0,
};

/// Explores all states; every rule must hold in each, and what the model is about must happen in some.
fn holds(bounds: Bounds) {
    let protocol = Directory {
        bounds,
        mistake: None,
    };
    let threads = std::thread::available_parallelism().unwrap().get();
    // Neither a count of states nor a depth ends it: only the end of what can be reached does.
    let explored = protocol.checker().threads(threads).spawn_bfs().join();
    explored.assert_properties();
    assert!(explored.is_done());
    println!(
        "{bounds:?}: {} states, {} transitions, complete",
        explored.unique_state_count(),
        explored.state_count()
    );
}

/// Explores until a rule is broken, which must happen.
fn is_found(mistake: Mistake, bounds: Bounds) {
    let protocol = Directory {
        bounds,
        mistake: Some(mistake),
    };
    let first = HasDiscoveries::AnyFailures;
    let explored = protocol.checker().finish_when(first).spawn_bfs().join();
    let found = explored.discoveries();
    let broken = found
        .iter()
        .find(|(rule, _)| explored.discovery_classification(rule).to_string() == "counterexample");
    let (rule, path) = broken.unwrap_or_else(|| panic!("{mistake:?} is not found in {bounds:?}"));
    println!(
        "{mistake:?}: not {rule}, after {:?}",
        path.clone().into_actions()
    );
}

#[test]
fn two_keys_live_and_die_through_a_loss_of_redis_and_a_change_of_the_leader() {
    holds(Bounds {
        keys: 2,
        losses: 1,
        pauses: 1,
        ..BASE
    });
}

#[test]
fn a_key_is_rotated_through_a_loss_of_redis_and_a_change_of_the_leader() {
    holds(Bounds {
        hashes: 2,
        losses: 1,
        pauses: 1,
        ..BASE
    });
}

#[test]
fn two_keys_live_and_die_while_gates_come_and_go_and_lose_redis() {
    holds(Bounds {
        keys: 2,
        losses: 1,
        cuts: 1,
        starts: 1,
        ..BASE
    });
}

#[test]
fn a_key_lives_and_dies_through_a_loss_of_redis_a_change_of_the_leader_and_a_cut_at_once() {
    holds(Bounds {
        losses: 1,
        pauses: 1,
        cuts: 1,
        ..BASE
    });
}

#[test]
fn a_key_is_rotated_while_leaders_take_turns_and_a_gate_is_cut_off() {
    holds(Bounds {
        hashes: 3,
        pauses: 2,
        cuts: 1,
        ..BASE
    });
}

#[test]
fn an_acknowledgement_that_ignores_the_generation_is_found() {
    let bounds = Bounds { losses: 1, ..BASE };
    is_found(Mistake::AcknowledgementOfAnyGeneration, bounds);
}

#[test]
fn loading_before_the_lease_is_found() {
    is_found(Mistake::LoadBeforeLease, BASE);
}

#[test]
fn seq_alone_after_a_rollback_is_found() {
    is_found(Mistake::SeqAlone, Bounds { losses: 1, ..BASE });
}

#[test]
fn a_secret_revealed_before_publication_is_found() {
    is_found(Mistake::RevealBeforePublish, BASE);
}

#[test]
fn a_claim_after_which_nobody_reads_the_lease_is_found() {
    let bounds = Bounds {
        losses: 1,
        pauses: 1,
        ..BASE
    };
    is_found(Mistake::ClaimWithoutReading, bounds);
}

#[test]
fn a_claim_that_fences_nobody_is_found() {
    let bounds = Bounds {
        losses: 1,
        pauses: 1,
        ..BASE
    };
    is_found(Mistake::ClaimWithoutFence, bounds);
}

#[test]
fn a_refused_leader_that_does_not_claim_again_is_found() {
    let bounds = Bounds { pauses: 2, ..BASE };
    is_found(Mistake::NoClaimAfterRefusal, bounds);
}

#[test]
fn a_rebuild_under_a_term_that_a_rollback_brought_back_is_found() {
    let bounds = Bounds {
        losses: 1,
        pauses: 1,
        ..BASE
    };
    is_found(Mistake::RebuildWithoutClaim, bounds);
}

#[test]
fn a_write_to_a_server_that_nobody_verified_is_found() {
    let bounds = Bounds { losses: 1, ..BASE };
    is_found(Mistake::WriteToUnverified, bounds);
}

#[test]
fn a_lease_judged_by_the_age_that_a_rollback_gave_it_is_found() {
    let bounds = Bounds {
        losses: 1,
        cuts: 1,
        ..BASE
    };
    is_found(Mistake::AgeOfRestoredLease, bounds);
}

#[test]
fn a_pod_without_a_lease_that_was_not_waited_for_is_found() {
    let bounds = Bounds { losses: 1, ..BASE };
    is_found(Mistake::NeverReadyHasReadNothing, bounds);
}

#[test]
fn an_old_copy_served_as_soon_as_the_lease_is_renewed_is_found() {
    is_found(Mistake::ServeOnRenewal, Bounds { cuts: 1, ..BASE });
}

#[test]
fn a_lease_that_is_renewed_only_after_the_reading_is_found() {
    is_found(Mistake::ReadBeforeRenewal, Bounds { cuts: 1, ..BASE });
}

#[test]
fn leases_judged_on_a_server_that_nobody_verified_are_found() {
    let bounds = Bounds {
        losses: 1,
        cuts: 1,
        ..BASE
    };
    is_found(Mistake::JudgeUnverified, bounds);
}

#[test]
fn a_rebuild_without_the_hashes_that_wait_to_be_revealed_is_found() {
    let bounds = Bounds {
        losses: 1,
        pauses: 1,
        ..BASE
    };
    is_found(Mistake::RebuildOfSecretsAlone, bounds);
}

#[test]
fn a_hash_withdrawn_while_an_earlier_leader_may_reveal_it_is_found() {
    let bounds = Bounds {
        hashes: 2,
        pauses: 1,
        ..BASE
    };
    is_found(Mistake::WithdrawBeforeReveal, bounds);
}
