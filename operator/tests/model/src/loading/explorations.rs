//! Properties that hold for a gate that loads, and the mistakes that break them.

use super::Loading;
use super::mistake::Mistake;
use super::system::Left;
use crate::checking::{holds, is_found};

/// Bounds of an exploration, in the order of [`Left`].
const fn left(renewals: u8, delays: u8, crashes: u8, reloads: u8, ticks: u8) -> Left {
    Left {
        renewals,
        delays,
        crashes,
        reloads,
        ticks,
    }
}

fn hold(bounds: Left, wider: Left) {
    let model = |left| Loading {
        left,
        mistake: None,
    };
    holds(model, bounds, wider);
}

#[test]
fn renewals_that_come_late_and_containers_that_are_restarted_acknowledge_nothing_that_is_served() {
    hold(left(3, 2, 1, 0, 0), left(4, 2, 2, 1, 0));
}

#[test]
fn a_copy_that_is_loaded_again_is_waited_for_until_it_is_replaced() {
    hold(left(2, 1, 0, 2, 1), left(3, 2, 1, 2, 1));
}

#[test]
fn a_gate_is_waited_for_until_it_has_served_its_grace_however_long_its_load_takes() {
    hold(left(2, 0, 1, 1, 2), left(3, 1, 1, 1, 3));
}

/// A test for each mistake, named by what is wrong.
macro_rules! mistakes {
    ($($name:ident: $mistake:ident in $bounds:expr;)*) => {$(
        #[test]
        fn $name() {
            let (left, mistake) = ($bounds, Mistake::$mistake);
            let model = Loading { left, mistake: Some(mistake) };
            is_found(model, &mistake, &left);
        }
    )*};
}

mistakes! {
    a_renewal_while_a_load_runs_is_found: RenewalDuringLoad in left(2, 0, 0, 0, 0);
    a_reload_that_hides_its_copy_is_found: ReloadWithoutCopy in left(1, 0, 0, 2, 0);
    a_grace_that_begins_with_the_end_of_a_load_is_found: GraceFromLoad in left(1, 0, 0, 0, 2);
    a_renewal_that_was_overtaken_is_found: OvertakenRenewal in left(1, 2, 0, 0, 0);
    a_renewal_of_a_container_that_ended_is_found: RenewalOfEndedProcess in left(1, 2, 1, 0, 0);
    a_gate_without_a_copy_that_was_checked_once_is_found: OneCheck in left(1, 0, 0, 0, 0);
    a_check_before_the_change_that_counts_is_found: CheckBeforeChange in left(2, 0, 0, 0, 0);
    a_silence_that_begins_before_the_last_renewal_is_found: SilenceFromFirstCheck in left(2, 0, 0, 0, 2);
    a_gate_that_is_waited_for_though_it_never_loads_is_found:
        CopyTakenForGranted in left(1, 0, 0, 0, 0);
}
