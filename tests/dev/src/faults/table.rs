//! The faults by their numbers, and the tests that put the product to each.

/// One fault.
#[derive(Debug)]
pub struct Fault {
    pub number: u8,
    pub name: &'static str,
    /// Tests by their paths within their crates, or rows of recorded measurements. All have to pass.
    pub tests: &'static [&'static str],
    /// What of the fault no test shows: without it the fault is not held, whatever has passed.
    pub lacking: Option<&'static str>,
}

const fn held(number: u8, name: &'static str, tests: &'static [&'static str]) -> Fault {
    let lacking = None;
    Fault {
        number,
        name,
        tests,
        lacking,
    }
}

const fn lacking(
    number: u8,
    name: &'static str,
    tests: &'static [&'static str],
    what: &'static str,
) -> Fault {
    let lacking = Some(what);
    Fault {
        number,
        name,
        tests,
        lacking,
    }
}

pub const FAULTS: &[Fault] = &[
    held(
        1,
        "the operator is killed at every request of a creation",
        &[
            "kills::a_creation_killed_at_any_request_ends_with_one_key_in_one_secret",
            "kills::a_brought_key_killed_at_any_request_ends_in_force",
        ],
    ),
    held(
        2,
        "the operator is killed at every request of a rotation, a reissue, a suspension",
        &[
            "kills::a_rotation_killed_at_any_request_leaves_no_moment_without_a_key",
            "kills::a_reissue_killed_at_any_request_leaves_no_moment_without_a_key",
            "kills::a_suspension_killed_at_any_request_ends_with_a_refused_key",
            "kills::a_replaced_hash_is_dead_though_the_replacement_was_killed_at_any_request",
            "rotation::a_leader_that_is_killed_at_some_moment_of_a_rotation_leaves_none_without_a_key",
        ],
    ),
    held(
        3,
        "the operator is killed at every request of a deletion",
        &[
            "kills::a_deletion_killed_at_any_request_frees_no_key_that_a_gate_accepts",
            "kills::a_deletion_of_a_brought_key_killed_at_any_request_frees_none_that_a_gate_accepts",
        ],
    ),
    held(
        4,
        "the operator is asked to stop",
        &[
            "election::a_stopped_leaders_successor_acts_within_three_seconds",
            "election::a_leader_that_is_asked_to_stop_amid_changes_ends_within_ten_seconds",
            "renewals::a_lease_is_released_though_the_answer_to_its_renewal_is_under_way",
            "successors::a_leader_that_is_asked_to_stop_leaves_its_changes_to_its_successor",
            "disruption::deleting_each_pod_of_the_operator_in_turn_loses_no_request",
        ],
    ),
    held(
        5,
        "the leader is stopped past its lease and continued",
        &[
            "election::a_leader_that_was_held_past_its_lease_writes_nothing_stale",
            "successors::a_leader_that_goes_on_after_its_lease_undoes_nothing_of_its_successors",
        ],
    ),
    held(
        6,
        "the Lease is deleted or taken by hand",
        &[
            "taken_away::a_lease_that_is_deleted_resets_nothing_and_is_taken_by_one_operator_once",
            "election::a_leader_whose_lease_was_taken_writes_no_more",
        ],
    ),
    held(
        7,
        "the API server is restarted",
        &[
            "election::a_restarted_api_server_is_no_reason_to_restart_or_to_tell_anything_twice",
            "api_server::an_api_server_that_is_restarted_amid_changes_loses_none_and_is_told_nothing_twice",
        ],
    ),
    held(
        8,
        "the API server is a black hole for 120 s",
        &[
            "black_hole::two_minutes_without_the_api_server_need_no_restart",
            "api_server::a_request_that_is_never_answered_ends_within_15_seconds_and_is_made_again",
        ],
    ),
    held(
        9,
        "the API server answers 429 and 503 with Retry-After: 600",
        &["api_server::refusals_that_name_ten_minutes_are_asked_again_within_seconds"],
    ),
    held(
        10,
        "a watch ends with 410 in its stream",
        &["api_server::a_watch_that_ends_with_410_is_followed_by_a_list"],
    ),
    held(
        11,
        "a watch is refused with 410",
        &["api_server::a_watch_that_is_refused_with_410_is_followed_by_a_list"],
    ),
    held(
        12,
        "a watch is cut off within an event, a list in its midst; etcd is restored from an older snapshot",
        &[
            "api_server::a_watch_that_is_cut_off_within_an_event_loses_none",
            "api_server::a_list_that_is_cut_off_is_not_taken_for_all_there_is",
            "lists::a_list_whose_second_page_is_cut_off_fills_no_directory",
            "lists::a_list_that_a_sweep_asks_for_and_is_cut_off_withdraws_nothing",
            "restored::a_key_that_was_revoked_since_the_snapshot_stays_dead",
            "restored::a_plan_that_was_added_since_the_snapshot_is_offered_no_more",
        ],
    ),
    held(
        13,
        "etcd is out of space",
        &["restored::a_full_etcd_ends_no_key_and_room_in_it_needs_no_restart"],
    ),
    held(
        14,
        "rights are taken away and given back",
        &[
            "taken_away::rights_that_are_taken_away_and_given_back_need_no_restart",
            "watches::a_kind_that_may_not_be_watched_is_told_of_and_keys_are_issued_and_revoked",
        ],
    ),
    held(
        15,
        "the definition of ApiKeys is deleted and made again",
        &[
            "taken_away::a_definition_that_is_deleted_and_made_again_revokes_its_keys_and_takes_new_ones",
        ],
    ),
    held(
        16,
        "an object is stored that no operator can read",
        &[
            "restrictions::a_key_that_cannot_be_read_stalls_only_itself_and_can_be_deleted",
            "restrictions::a_rebuild_keeps_a_key_that_cannot_be_read",
            "hindrances::an_api_that_cannot_be_read_stalls_and_is_told_of_once",
            "unreadable::an_api_key_that_nobody_can_read_keeps_its_key_and_holds_up_no_other",
        ],
    ),
    held(
        17,
        "finalizers are stripped while no operator runs",
        &[
            "sweep::keys_stripped_while_no_operator_ran_outlast_one_sweep_and_go_with_the_second",
            "sweep::most_keys_are_withdrawn_only_when_somebody_allows_it",
            "sequences::after_any_changes_and_faults_everything_is_as_declared",
        ],
    ),
    held(
        18,
        "a namespace with 200 keys is deleted",
        &[
            "tenants::a_namespace_with_200_keys_is_gone_within_a_minute_of_its_deletion",
            "namespace::a_namespace_that_goes_leaves_no_key_that_works_and_touches_no_other",
        ],
    ),
    held(
        19,
        "a key's Secret is deleted or edited",
        &[
            "reissue::a_deleted_secret_is_issued_again_and_the_old_key_works_on",
            "reissue::an_edited_text_is_replaced_and_what_others_wrote_stays",
            "reissue::the_fourth_reissue_stalls_until_its_owner_asks_for_it",
            "sequences::after_any_changes_and_faults_everything_is_as_declared",
        ],
    ),
    held(
        20,
        "another's Secret has the name",
        &[
            "conflicts::a_foreign_secret_is_never_touched",
            "conflicts::a_foreign_secret_of_its_name_holds_up_one_key_and_costs_none",
        ],
    ),
    held(
        21,
        "two ApiKeys name one Secret or one hash",
        &[
            "conflicts::two_keys_with_one_secret_have_one_winner_and_the_loser_takes_over",
            "adoption::a_secret_that_a_deleted_apikey_left_is_waited_for_until_it_is_collected",
            "conflicts::two_keys_with_one_hash_have_one_winner_and_the_loser_takes_over",
            "conflicts::two_keys_with_one_key_id_have_one_winner",
            "conflicts::a_hash_that_three_keys_name_is_one_keys_at_a_time",
        ],
    ),
    held(
        22,
        "Redis is flushed",
        &[
            "store_faults::a_flushed_directory_is_rebuilt",
            "10 000 keys: cold start, from the process' start to a complete directory, the slowest",
            "outages::a_redis_that_lost_its_data_fails_no_good_key",
            "sequences::after_any_changes_and_faults_everything_is_as_declared",
        ],
    ),
    held(
        23,
        "Redis is killed and comes back empty or with an old dump",
        &[
            "store_faults::a_redis_that_came_back_empty_is_filled_though_keys_said_it_was_away",
            "store_faults::an_old_dump_brings_no_revoked_key_back_and_loses_no_new_one",
            "store::a_revocation_that_redis_forgot_and_a_dump_still_holds_counts_again",
            "outages::a_redis_that_is_killed_and_comes_back_empty_fails_no_good_key",
            "directory_faults::an_old_dump_refuses_no_good_key_and_accepts_no_revoked_one",
            "sequences::after_any_changes_and_faults_everything_is_as_declared",
        ],
    ),
    held(
        24,
        "a replica of Redis is promoted",
        &[
            "store_faults::a_promoted_replica_is_rebuilt",
            "store::a_promoted_replica_that_lagged_behind_revives_no_key_and_loses_none",
            "outages::a_redis_that_became_a_replica_fails_no_good_key",
        ],
    ),
    held(
        25,
        "Redis is out of memory, or evicts a record",
        &[
            "outages::a_full_redis_fails_no_good_key",
            "store_faults::evicted_records_are_missed_and_put_back",
            "store_faults::evicted_owners_are_missed_and_put_back",
            "store_faults::an_evicted_index_of_what_owners_hold_is_missed_and_put_back",
            "store_faults::evicted_tombstones_are_missed",
            "store_faults::keys_come_and_go_whatever_else_is_evicted_and_it_is_there_again",
            "store::a_full_redis_takes_every_restriction_and_loses_no_other_change",
            "store::whatever_redis_evicts_is_put_back_amid_changes",
        ],
    ),
    held(
        26,
        "Redis is slow, a black hole, half open",
        &[
            "outages::a_redis_slowed_by_half_a_second_fails_no_good_key",
            "outages::a_black_hole_before_redis_fails_no_good_key",
            "outages::connections_whose_other_end_is_gone_fail_no_good_key",
            "failures::a_redis_that_stays_slow_is_as_good_as_none_past_the_grace",
            "failures::past_the_grace_redis_away_is_503_for_every_key_and_over_when_it_is_back",
        ],
    ),
    held(
        27,
        "Redis has another password after a rotation",
        &[
            "outages::a_redis_with_another_password_fails_no_good_key",
            "installation::a_rotated_credential_rolls_the_pods_that_use_it",
        ],
    ),
    held(
        28,
        "PostgreSQL is restarted, out of connections, slow, out of disk",
        &[
            "outages::an_outage_is_503_at_once_and_its_end_is_noticed",
            "outages::a_server_without_a_free_connection_is_503",
            "outages::a_statement_that_takes_too_long_is_503",
            "outages::a_server_that_accepts_and_says_nothing_is_503_in_time",
            "server_faults::a_restart_is_over_within_5_seconds",
            "server_faults::a_server_that_falls_silent_is_not_waited_for_and_served_from_when_it_speaks",
            "server_faults::a_server_that_answers_late_is_not_waited_for_and_served_from_when_it_is_quick",
            "server_faults::a_server_whose_answers_trickle_is_not_waited_for_and_served_from_when_they_flow",
            "server_faults::a_server_without_a_free_connection_refuses_and_serves_when_there_is_one",
            "server_faults::disk::a_full_data_disk_fails_loads_and_no_read",
            "server_faults::disk::a_full_disk_of_the_log_stops_the_server_until_there_is_space_and_it_is_restarted",
        ],
    ),
    held(
        29,
        "a migration fails; two race",
        &[
            "installation::a_migration_that_fails_leaves_the_version_before_in_service",
            "migrations::two_migrations_that_race_both_succeed",
        ],
    ),
    held(
        30,
        "a service hangs",
        &["services::a_service_that_hangs_is_503_at_the_deadline_and_nothing_is_charged_twice"],
    ),
    lacking(
        31,
        "a rolling upgrade under load three times, and back",
        &["rollout::a_new_version_rolls_under_load_without_a_failed_request"],
        "one upgrade is rolled under load, not three and none back",
    ),
    lacking(
        32,
        "a new image is broken",
        &[],
        "no test rolls out an image that does not start",
    ),
    lacking(
        33,
        "a node is drained under disruption budgets",
        &["disruption::deleting_each_pod_of_the_gate_in_turn_loses_no_request"],
        "pods are deleted in turn, not evicted",
    ),
    lacking(
        34,
        "autoscaling is turned on and off while scaled",
        &[],
        "no test scales",
    ),
    held(
        35,
        "children are edited and deleted",
        &["installation::what_is_ours_is_repaired_and_what_others_added_stays"],
    ),
    held(
        36,
        "a clock is an hour ahead or behind",
        &[
            "clocks::keys_begin_end_and_rotate_by_redis_clock_under_an_operator_an_hour_ahead",
            "clocks::keys_begin_end_and_rotate_by_redis_clock_under_an_operator_an_hour_behind",
            "clocks::a_gate_an_hour_ahead_begins_and_ends_keys_by_redis_clock",
            "clocks::a_gate_an_hour_behind_begins_and_ends_keys_by_redis_clock",
            "clocks::a_good_key_is_served_however_redis_clock_is_moved",
            "rotation::a_period_is_counted_on_redis_clock",
        ],
    ),
    held(
        37,
        "10 000 keys: a cold start, created, rotated and deleted at once",
        &[
            "10 000 keys: cold start, from the process' start to a complete directory, the slowest",
            "10 000 keys: peak memory, of all that follows",
            "10 000 keys: create to usable at three gates, p99",
            "10 000 keys: delete to dead at three gates, p99",
            "10 000 keys: restart, writes but for the Lease",
            "10 000 keys: all deleted, the last dead after the last request",
            "10 000 keys: leader killed, until another acts, the slowest",
            "10 000 keys: leader asked to stop, until another acts, the slowest",
        ],
    ),
    held(
        38,
        "a gate is cut from Redis; the operator is",
        &[
            "cut_off::a_gate_without_redis_serves_its_share_and_a_deletion_waits_for_it_by_name",
            "cut_off::an_operator_without_redis_loses_no_deletion_and_no_request",
            "failures::past_the_grace_redis_away_is_503_for_every_key_and_over_when_it_is_back",
            "acknowledgements::a_deletion_waits_for_a_silent_gate_and_ends_with_its_acknowledgement",
            "acknowledgements::a_silent_gate_is_not_waited_for_beyond_its_grace_and_ten_seconds",
            "sequences::after_any_changes_and_faults_everything_is_as_declared",
        ],
    ),
    lacking(
        39,
        "the operator of the version before and this one follow each other",
        &["former::operators_of_two_versions_take_turns_and_no_key_is_lost_or_revived"],
        "a rotated key that is deleted under the version before works until its overlap ends",
    ),
    lacking(
        40,
        "helm upgrade dies midway; rollback, uninstall, reinstall",
        &[
            "installation::the_readmes_commands_install_an_api_that_answers_keeps_its_clients_apart_and_loads_data",
        ],
        "no test interrupts Helm",
    ),
    held(
        41,
        "the log is not read; no file descriptors, no disk",
        &[
            "exhaustion::a_log_that_nobody_reads_holds_no_request_up_and_tells_what_it_lost",
            "exhaustion::out_of_descriptors_clients_take_the_places_of_idle_connections",
            "exhaustion::a_log_on_a_full_disk_holds_no_request_up_and_goes_on_where_there_is_space",
        ],
    ),
    held(
        42,
        "the portal is killed at every request of a creation, rotation, revocation",
        &[
            "keys::tests::kills::a_creation_that_dies_at_any_request_and_is_sent_again_makes_one_key",
            "keys::tests::kills::a_rotation_that_dies_at_any_request_and_is_sent_again_rotates_once",
            "keys::tests::kills::a_revocation_that_dies_at_any_request_and_is_sent_again_leaves_no_key",
        ],
    ),
    held(
        43,
        "Redis is away from the portal",
        &[
            "outages::redis_away_and_back_keeps_everybody_signed_in",
            "outages::a_sign_in_without_redis_says_so_on_a_page",
        ],
    ),
    held(
        44,
        "the identity provider is away, or has other keys",
        &[
            "outages::the_provider_away_stops_sign_ins_and_nothing_else",
            "outages::a_portal_that_starts_before_its_provider_is_ready_and_says_so",
            "outages::a_logout_while_the_provider_has_new_keys_is_believed",
        ],
    ),
    held(
        45,
        "the API server is away from the portal",
        &[
            "outages::the_api_server_away_costs_keys_and_nothing_else",
            "quota::tests::the_quota_falls_by_one_with_each_request_and_never_by_looking",
            "data::tests::the_answer_is_the_services_own_and_no_cache_keeps_it",
        ],
    ),
    held(
        46,
        "the portal's next version is rolled out under signed-in readers, and back",
        &[
            "rollout::a_rollout_and_its_way_back_fail_no_request_of_twenty_signed_in_readers",
            "rollout::a_sign_in_that_one_version_began_ends_at_the_other",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{fs, io};

    use super::*;
    use crate::project::project;

    /// All Rust of a folder but this table's own.
    fn sources(folder: &Path, text: &mut String) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                sources(&path, text)?;
            } else if path.extension().is_some_and(|end| end == "rs")
                && !path.ends_with("faults/table.rs")
            {
                text.push_str(&fs::read_to_string(&path)?);
            }
        }
        Ok(())
    }

    #[test]
    fn each_number_from_1_to_46_stands_once_in_order() {
        let numbers = FAULTS.iter().map(|fault| fault.number);
        assert!(numbers.eq(1..=46));
    }

    #[test]
    fn each_test_and_row_that_is_named_exists() -> io::Result<()> {
        let mut text = String::new();
        for folder in ["operator", "services", "tests"] {
            sources(&project().join(folder), &mut text)?;
        }
        let is_there = |named: &str| match named.rsplit_once("::") {
            Some((_, test)) => text.contains(&format!("fn {test}(")),
            None => named
                .split_once(": ")
                .is_some_and(|(_, row)| text.contains(&format!("\"{row}\""))),
        };
        let named = FAULTS.iter().flat_map(|fault| fault.tests);
        let missing: Vec<_> = named.filter(|named| !is_there(named)).collect();
        assert!(missing.is_empty(), "{missing:#?}");
        Ok(())
    }

    #[test]
    fn a_fault_has_tests_or_says_what_is_lacking() {
        let empty = |fault: &&Fault| fault.tests.is_empty() && fault.lacking.is_none();
        assert!(FAULTS.iter().find(empty).is_none());
    }
}
