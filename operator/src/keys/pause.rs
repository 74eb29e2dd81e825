//! Pause until an ApiKey is reconciled again, if nothing happens before.

use std::time::Duration;

use water_domain::KeyHash;
use water_operator_core::key::step::{Hindrance, Refusal, Verdict};

use super::verdict::TOLD_AFTER;
use crate::backoff::{Backoff, spread};

/// Pause while nothing happens.
const IDLE: Duration = Duration::from_secs(600);
/// Time by which keys with one time in common are spread after it.
const AFTER: Duration = Duration::from_secs(1);
/// Pause while a namespace's labels, or the state of a restored key, may change without a report.
const REFUSED: Duration = Duration::from_secs(60);
/// Longest pause of the loser of a hash or of a Secret's name: the loser takes over within 5 s of the winner's
/// deletion, however long it has waited.
const TAKEN: Duration = Duration::from_secs(3);
/// Pause while pods remain, whose end is not reported.
const POD_ENDS: Duration = Duration::from_secs(4);
/// Longest pause after any other obstacle.
pub const HINDERED: Duration = Duration::from_secs(30);

/// The pause after a verdict, [`spread`] by `chance`. `left`: until something has to be done though nothing happens. A
/// key in force ends the ApiKey's row of failures in `backoff`, an obstacle adds to it.
pub fn after(
    verdict: &Verdict<KeyHash>,
    left: Option<Duration>,
    uid: &str,
    backoff: &Backoff,
    chance: u32,
) -> Duration {
    let soon_after = |left: Duration| left.saturating_add(spread(AFTER, chance));
    let hindered = |longest| backoff.failed(uid, longest, chance);
    match verdict {
        Verdict::InForce(_) => {
            backoff.succeeded(uid);
            let idle = spread(IDLE, chance);
            left.map_or(idle, |left| soon_after(left).min(idle))
        }
        Verdict::Refused(Refusal::NotAdmitted | Refusal::NotAdopted) => spread(REFUSED, chance),
        Verdict::Refused(Refusal::Taken | Refusal::SecretConflict) => hindered(TAKEN),
        Verdict::Refused(Refusal::ReissueLimit(_)) => {
            left.map_or(spread(HINDERED, chance), |left| soon_after(left).min(IDLE))
        }
        Verdict::Refused(Refusal::Revoked(_) | Refusal::OwnerRevoked | Refusal::Undecodable) => {
            spread(IDLE, chance)
        }
        Verdict::Held(Hindrance::GatesRemain) => hindered(POD_ENDS),
        _ => hindered(HINDERED),
    }
}

/// The pause until a write that is limited for so long. Never shorter than that, so that the write is then allowed.
pub fn after_limit(limited: Duration, chance: u32) -> Duration {
    limited + spread(AFTER, chance)
}

/// The pause of an ApiKey whose wait for the gates is not reported yet: at least [`TOLD_AFTER`].
pub fn until_told(chance: u32) -> Duration {
    spread(TOLD_AFTER * 3 / 2, chance)
}

#[cfg(test)]
mod tests {
    use water_domain::Timestamp;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    /// Least, middle and greatest chance, between which pauses are spread.
    const CHANCES: [u32; 3] = [0, 250, 499];

    fn in_force() -> Verdict<KeyHash> {
        Verdict::InForce("a".repeat(64).parse().unwrap())
    }

    fn pauses(verdict: &Verdict<KeyHash>, left: Option<Duration>) -> [Duration; 3] {
        CHANCES.map(|chance| after(verdict, left, "uid", &Backoff::default(), chance))
    }

    /// The tenth pause in a row, at its longest.
    fn tenth(verdict: &Verdict<KeyHash>) -> Duration {
        let backoff = Backoff::default();
        let pauses = (0..10).map(|_| after(verdict, None, "uid", &backoff, 499));
        pauses.last().unwrap()
    }

    #[test]
    fn keys_that_wait_for_one_thing_come_back_apart() {
        let at = Timestamp::from_millis(0).unwrap();
        let waits = [
            (in_force(), None),
            (in_force(), Some(60 * SECOND)),
            (Verdict::Awaiting, None),
            (Verdict::Held(Hindrance::Directory), None),
            (Verdict::Held(Hindrance::GatesRemain), None),
            (Verdict::Refused(Refusal::NotAdmitted), None),
            (Verdict::Refused(Refusal::Taken), None),
            (Verdict::Refused(Refusal::SecretConflict), None),
            (Verdict::Refused(Refusal::Undecodable), None),
            (
                Verdict::Refused(Refusal::ReissueLimit(at)),
                Some(60 * SECOND),
            ),
        ];
        for (verdict, left) in waits {
            let pauses = pauses(&verdict, left);
            assert!(
                pauses.is_sorted() && pauses[0] < pauses[2],
                "{verdict:?}: {pauses:?}"
            );
        }
    }

    #[test]
    fn a_wait_for_gates_is_looked_at_when_it_is_to_be_told_of() {
        let pauses = CHANCES.map(until_told);
        assert!(pauses.is_sorted() && pauses[0] < pauses[2], "{pauses:?}");
        assert!(
            TOLD_AFTER <= pauses[0] && pauses[2] < 2 * TOLD_AFTER,
            "{pauses:?}"
        );
    }

    #[test]
    fn what_hinders_is_looked_at_less_and_less_often() {
        for (verdict, longest) in [
            (Verdict::Awaiting, HINDERED),
            (Verdict::Held(Hindrance::Directory), HINDERED),
            (Verdict::Held(Hindrance::GatesRemain), POD_ENDS),
            (Verdict::Refused(Refusal::Taken), TAKEN),
            (Verdict::Refused(Refusal::SecretConflict), TAKEN),
        ] {
            assert!(pauses(&verdict, None)[2] < SECOND / 2, "{verdict:?}");
            assert_eq!(tenth(&verdict), spread(longest, 499), "{verdict:?}");
        }
    }

    #[test]
    fn a_loser_looks_again_within_five_seconds() {
        for verdict in [Refusal::Taken, Refusal::SecretConflict].map(Verdict::Refused) {
            assert!(tenth(&verdict) < 4 * SECOND);
        }
    }

    #[test]
    fn a_key_in_force_is_looked_at_after_its_next_time_and_ends_the_row_of_failures() {
        let left = 60 * SECOND;
        for pause in pauses(&in_force(), Some(left)) {
            assert!(pause > left && pause < left + 2 * SECOND, "{pause:?}");
        }
        assert!(pauses(&in_force(), Some(10 * IDLE)) == pauses(&in_force(), None));
        let backoff = Backoff::default();
        let hindered = Verdict::Held(Hindrance::Directory);
        let pause = |verdict: &_| after(verdict, None, "uid", &backoff, 250);
        let first = pause(&hindered);
        assert!(pause(&hindered) > first);
        pause(&in_force());
        assert_eq!(pause(&hindered), first);
    }
}
