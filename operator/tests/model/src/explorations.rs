//! Properties that hold, dimension by dimension: first within the bounds of each test run, then within wider ones.

use crate::bounds::{Bounds, Left, Material};
use crate::checking::holds;
use crate::protocol::Protocol;

/// Bounds with one key that the operator makes; each exploration adds to them.
pub const BASE: Bounds = Bounds {
    keys: 1,
    hashes: 1,
    material: Material::Generated,
    gates: 2,
    is_in_force: false,
    overlap: true,
    left: NONE,
};
/// Bounds in which nothing happens that the system does not do by itself.
pub const NONE: Left = Left {
    losses: 0,
    pauses: 0,
    slow: 0,
    delays: 0,
    lags: 0,
    cuts: 0,
    starts: 0,
    rotations: 0,
    suspensions: 0,
    hands: 0,
    foreign: 0,
    misnames: 0,
    hindrances: 0,
    refusals: 0,
    deletions: 0,
    moves: 0,
    halts: 0,
    ticks: 0,
};

const AT_ONCE: Bounds = Bounds {
    overlap: false,
    ..ROTATED
};
/// A key that may be reissued twice, though a leader be lost meanwhile.
pub const REISSUED: Bounds = Bounds { hashes: 4, ..BASE };
/// A key that may be replaced once, though a leader be lost meanwhile.
pub const ROTATED: Bounds = Bounds { hashes: 3, ..BASE };
const TWO: Bounds = Bounds { keys: 2, ..BASE };
pub const BROUGHT: Bounds = Bounds {
    material: Material::Brought,
    ..BASE
};
/// A brought key that is in force at the gate that is ready.
pub const IN_FORCE: Bounds = Bounds {
    is_in_force: true,
    ..BROUGHT
};
const BROUGHT_AT_ONCE: Bounds = Bounds {
    overlap: false,
    ..BROUGHT
};
pub const SHARED: Bounds = Bounds {
    keys: 2,
    material: Material::Shared,
    ..BASE
};

/// The bounds with the gate alone that is ready.
pub const fn one_gate(bounds: Bounds) -> Bounds {
    Bounds { gates: 1, ..bounds }
}

/// A test for each row: its name, the bounds of each run, and the wider ones.
macro_rules! explorations {
    ($($name:ident:
        $bounds:expr, $($field:ident $count:expr),*;
        $wider:expr, $($wider_field:ident $wider_count:expr),*;
    )*) => {$(
        #[test]
        fn $name() {
            let left = Left { $($field: $count,)* ..NONE };
            let wider_left = Left { $($wider_field: $wider_count,)* ..NONE };
            let model = |bounds| Protocol::new(bounds, None);
            holds(model, Bounds { left, ..$bounds }, Bounds { left: wider_left, ..$wider });
        }
    )*};
}

explorations! {
    two_keys_live_and_die_through_a_loss_of_redis_and_a_change_of_the_leader:
        one_gate(TWO), losses 1, pauses 1;
        TWO, losses 1, pauses 1;
    a_key_is_rotated_through_a_loss_of_redis_and_a_change_of_the_leader:
        one_gate(ROTATED), rotations 1, losses 1, pauses 1;
        one_gate(ROTATED), rotations 1, losses 1, pauses 1, slow 1;
    a_key_is_rotated_at_two_gates_through_a_loss_of_redis_and_a_change_of_the_leader:
        ROTATED, rotations 1, losses 1;
        ROTATED, rotations 1, losses 1, pauses 1;
    two_keys_live_and_die_while_gates_come_and_go_and_lose_redis:
        BASE, losses 1, cuts 1, starts 1;
        TWO, losses 1, cuts 1, starts 1;
    a_key_lives_and_dies_through_a_loss_of_redis_a_change_of_the_leader_and_a_cut_at_once:
        one_gate(BASE), losses 1, pauses 1, cuts 1;
        BASE, losses 1, pauses 1, cuts 1;
    a_key_is_rotated_while_leaders_take_turns_and_a_gate_is_cut_off:
        one_gate(ROTATED), rotations 1, pauses 1, cuts 1;
        one_gate(ROTATED), rotations 1, pauses 1, slow 1, cuts 1;
    a_key_is_rotated_at_two_gates_while_leaders_take_turns_and_one_is_cut_off:
        ROTATED, rotations 1, cuts 1;
        REISSUED, rotations 1, pauses 2, cuts 1;
    a_key_is_replaced_twice_while_leaders_take_turns_and_a_gate_is_cut_off:
        one_gate(REISSUED), rotations 1, hands 1, cuts 1;
        one_gate(REISSUED), rotations 1, hands 1, pauses 2, cuts 1;
    leaders_that_lag_and_leaders_that_are_lost_undo_nothing_that_was_told:
        one_gate(BASE), suspensions 1, lags 1, pauses 1, slow 2;
        one_gate(BASE), suspensions 2, lags 2, pauses 1, slow 2;
    a_leader_that_lags_writes_nothing_back_that_redis_lost:
        one_gate(BASE), lags 1, losses 1, pauses 1;
        one_gate(ROTATED), rotations 1, lags 1, losses 1, slow 1;
    a_key_is_suspended_resumed_and_rotated_and_its_overlap_ends:
        ROTATED, rotations 1, suspensions 2, ticks 1;
        one_gate(ROTATED), rotations 1, suspensions 1, ticks 1, pauses 1, slow 1;
    a_key_is_cut_off_at_once_where_there_is_no_overlap:
        AT_ONCE, rotations 1, suspensions 1;
        one_gate(AT_ONCE), rotations 1, suspensions 1, pauses 1, slow 1;
    a_brought_hash_is_replaced_before_and_after_it_is_in_force:
        one_gate(BROUGHT), rotations 2, pauses 1, slow 1;
        one_gate(BROUGHT), rotations 2, pauses 1, slow 1, ticks 1;
    a_brought_hash_is_replaced_through_a_loss_of_redis:
        one_gate(BROUGHT), rotations 1, losses 1, slow 1;
        one_gate(BROUGHT), rotations 2, losses 1, slow 1, ticks 1;
    a_brought_hash_is_cut_off_at_once_through_a_loss_of_redis:
        one_gate(BROUGHT_AT_ONCE), rotations 1, losses 1, slow 1;
        one_gate(BROUGHT_AT_ONCE), rotations 2, losses 1, slow 1, suspensions 1;
    a_key_is_admitted_again_through_a_loss_of_redis:
        one_gate(BASE), hindrances 2, losses 1;
        one_gate(BASE), hindrances 2, losses 1, slow 1;
    two_owners_of_one_hash_never_have_it_both:
        one_gate(SHARED), losses 1;
        one_gate(SHARED), losses 1, pauses 1;
    a_key_is_restricted_while_its_plan_is_missing_or_its_secret_is_somebody_elses:
        BASE, hindrances 2, foreign 1, suspensions 1;
        one_gate(BASE), hindrances 2, foreign 1, suspensions 1, losses 1;
    a_key_is_restricted_while_nothing_can_be_written_of_its_api_key:
        one_gate(BROUGHT), rotations 1, suspensions 1, refusals 2;
        one_gate(BROUGHT), rotations 1, suspensions 2, refusals 2, losses 1;
    a_key_dies_with_its_water_data_api_and_after_it:
        one_gate(BASE), deletions 1, starts 1, pauses 1;
        one_gate(BASE), deletions 1, starts 2, pauses 1;
    a_key_lives_and_dies_though_its_status_names_another_water_data_api:
        one_gate(ROTATED), misnames 1, suspensions 1, pauses 1;
        one_gate(ROTATED), misnames 2, rotations 1, suspensions 1, pauses 1;
    a_key_lives_and_dies_while_redis_is_moved:
        one_gate(BROUGHT), moves 1, pauses 1;
        one_gate(BROUGHT), moves 3, pauses 1;
    a_key_is_kept_while_redis_is_moved_there_and_back:
        one_gate(BASE), moves 2;
        one_gate(BASE), moves 2, pauses 1;
    a_key_that_is_revoked_while_redis_is_moved_there_and_back_stays_dead:
        one_gate(IN_FORCE), moves 2, pauses 1, halts 1;
        one_gate(IN_FORCE), moves 3, pauses 1, halts 2;
    a_restriction_that_stands_still_while_redis_is_moved_there_and_back_loses_nothing:
        one_gate(IN_FORCE), moves 2, pauses 1, slow 1;
        one_gate(IN_FORCE), moves 2, pauses 1, slow 1, suspensions 1;
    a_secret_is_deleted_or_edited_by_hand_and_a_lost_leader_writes_it_late:
        one_gate(ROTATED), hands 1, pauses 1, slow 1;
        one_gate(REISSUED), hands 2, pauses 1, slow 1, delays 1;
    a_secret_is_lost_again_before_the_status_tells_of_its_successor:
        one_gate(REISSUED), hands 2;
        REISSUED, hands 2, pauses 1;
    a_secret_is_changed_by_hand_through_a_loss_of_redis:
        one_gate(ROTATED), rotations 1, hands 1, losses 1;
        one_gate(REISSUED), rotations 1, hands 2, losses 1;
    a_command_that_comes_late_changes_nothing_that_was_told:
        BASE, suspensions 2, slow 1, delays 1;
        one_gate(ROTATED), rotations 1, suspensions 2, slow 2, delays 2;
}
