//! Findings when a rule is left out: each mistake breaks a property within these bounds.

use crate::bounds::{Bounds, Left};
use crate::checking::is_found;
use crate::explorations::{BASE, BROUGHT, IN_FORCE, NONE, REISSUED, ROTATED, SHARED, one_gate};
use crate::mistake::Mistake;
use crate::protocol::Protocol;

fn found(mistake: Mistake, bounds: Bounds, left: Left) {
    let bounds = Bounds { left, ..bounds };
    is_found(Protocol::new(bounds, Some(mistake)), &mistake, &bounds);
}

const ONE: Bounds = one_gate(BASE);
const ONE_ROTATED: Bounds = one_gate(ROTATED);

/// A test for each mistake, named by what is wrong.
macro_rules! mistakes {
    ($($name:ident: $mistake:ident in $bounds:expr, $($field:ident $count:expr),*;)*) => {$(
        #[test]
        fn $name() {
            found(Mistake::$mistake, $bounds, Left { $($field: $count,)* ..NONE });
        }
    )*};
}

mistakes! {
    loading_before_the_lease_is_found: LoadBeforeLease in BASE,;
    seq_alone_after_a_rollback_is_found: SeqAlone in ONE, losses 1;
    an_old_copy_served_as_soon_as_the_lease_is_renewed_is_found: ServeOnRenewal in ONE, cuts 1;
    a_lease_that_is_renewed_only_after_the_reading_is_found: ReadBeforeRenewal in ONE, cuts 1;

    an_acknowledgement_that_ignores_the_generation_is_found:
        AcknowledgementOfAnyGeneration in BASE, losses 1;
    a_lease_judged_by_the_age_that_a_rollback_gave_it_is_found:
        AgeOfRestoredLease in ONE, losses 1;
    a_pod_without_a_lease_that_was_not_waited_for_is_found:
        NeverReadyHasReadNothing in BASE, losses 1;
    leases_judged_on_a_server_that_nobody_verified_are_found: JudgeUnverified in ONE, losses 1;

    a_claim_after_which_nobody_reads_the_lease_is_found:
        ClaimWithoutReading in ONE, losses 1, pauses 1, lags 1;
    a_claim_that_fences_nobody_is_found: ClaimWithoutFence in ONE, losses 1, pauses 1, slow 1;
    a_claim_of_the_term_that_nothing_follows_is_found: NoClaimAfterRefusal in ONE, pauses 2;
    a_rebuild_under_a_term_that_a_rollback_brought_back_is_found:
        RebuildWithoutClaim in ONE, losses 1, pauses 1, lags 1;
    a_list_that_was_read_before_the_claim_is_found:
        ListBeforeClaim in ONE, suspensions 1, lags 1, pauses 1, slow 2;
    a_directory_of_a_former_water_data_api_taken_for_complete_is_found:
        ClaimOfAnotherApi in ONE, deletions 1, starts 1, pauses 1;
    gates_that_start_before_the_claim_are_found:
        GatesBeforeClaim in ONE, deletions 1, starts 1, pauses 1;
    a_rebuild_without_the_hashes_that_wait_to_be_revealed_is_found:
        RebuildOfSecretsAlone in ONE, losses 1, slow 1;
    a_rebuild_without_what_is_hindered_is_found:
        RebuildWithoutHindered in ONE, losses 1, hindrances 1;
    a_rebuild_that_believes_an_old_refusal_is_found:
        RebuildOfStatusesAlone in ONE, losses 1, hindrances 2;

    a_rebuild_that_widens_a_replaced_key_is_found:
        RebuildWidens in one_gate(BROUGHT), rotations 1, losses 1;
    an_old_secret_that_a_rebuild_believes_is_found:
        OldSecretBelieved in ONE_ROTATED, rotations 1, hands 1, losses 1;
    a_sweep_that_judges_by_secrets_is_found: SweepBySecrets in ONE, slow 1;
    a_status_that_forgets_a_retiring_key_is_found:
        RetiringForgotten in one_gate(BROUGHT), rotations 1;

    a_move_that_is_recorded_after_it_has_begun_is_found:
        RecordedAfterMove in one_gate(IN_FORCE), moves 2, pauses 1;
    a_redis_named_by_a_lost_leader_after_another_was_written_is_found:
        AnnouncedForNoRedis in one_gate(IN_FORCE), moves 2, pauses 1, halts 1;
    a_directory_that_stays_open_while_its_redis_is_announced_again_is_found:
        AnnouncedUnderAnOldClaim in one_gate(IN_FORCE), moves 2, pauses 1, halts 2;
    a_redis_named_before_its_directory_is_complete_is_found:
        NamedBeforeCompletion in one_gate(IN_FORCE), moves 2, pauses 1;
    a_redis_named_whatever_the_status_has_come_to_say_is_found:
        NamedWhateverVersion in one_gate(IN_FORCE), moves 2, pauses 1, halts 1;
    a_directory_opened_by_what_a_watch_has_told_is_found:
        OldStatusBelieved in one_gate(IN_FORCE), moves 4, halts 1, lags 1;

    a_write_to_a_server_that_nobody_verified_is_found: WriteToUnverified in BASE, losses 1;
    a_hash_taken_from_its_holder_is_found: TakenIgnored in SHARED,;
    what_is_declared_in_part_is_found: DeclaredInPart in BROUGHT, rotations 2;

    a_brought_hash_published_before_it_is_announced_is_found: BroughtUnannounced in BROUGHT,;
    a_change_that_counts_as_acknowledged_at_once_is_found: Unacknowledged in ROTATED, rotations 1;
    a_status_that_is_believed_to_name_the_water_data_api_is_found:
        NamedApiBelieved in ONE, misnames 1;
    a_secret_whose_text_nobody_reads_is_found: SecretBelieved in ROTATED, hands 1;
    a_word_of_an_earlier_spec_is_found: ToldOfAnySpec in ONE, suspensions 1, pauses 1, losses 1;

    a_secret_revealed_before_publication_is_found: RevealBeforePublish in BASE,;
    a_stale_cache_is_found: StaleCache in ONE, suspensions 1, lags 1;
    an_end_that_no_status_tells_of_is_found:
        EndUntold in one_gate(BROUGHT), rotations 1, losses 1, slow 1;
    a_secret_written_over_another_is_found:
        ReplaceAnyVersion in ONE_ROTATED, hands 1, slow 1, pauses 1;
    a_hash_withdrawn_while_an_earlier_leader_may_reveal_it_is_found:
        WithdrawBeforeReveal in ONE_ROTATED, pauses 1, slow 1;
    a_restriction_that_waits_for_a_hindrance_is_found: HeldUp in ONE, hindrances 1, suspensions 1;
    a_restriction_that_waits_for_an_announcement_is_found:
        AnnounceFirst in one_gate(BROUGHT), rotations 1, suspensions 1, refusals 1;
    a_label_that_comes_before_the_declaration_is_found: LabelFirst in ONE, suspensions 1;
    a_current_key_that_ends_by_its_lost_successor_is_found:
        EndedByLostSuccessor in one_gate(REISSUED), hands 2;
    a_finalizer_that_goes_before_the_acknowledgement_is_found: ReleaseUnacknowledged in BASE,;
    a_key_cut_off_by_its_successor_is_found: NoOverlap in ONE_ROTATED, rotations 1;
    a_delayed_command_of_the_same_term_is_found:
        DelayedUnderSameTerm in ONE, suspensions 2, slow 1, delays 1;
    a_late_post_after_a_deletion_by_hand_is_found:
        LatePostAfterDeletion in ONE_ROTATED, hands 1, pauses 1, slow 1;
}
