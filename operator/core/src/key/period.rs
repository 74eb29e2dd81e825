//! The age at which a key is replaced by itself.

use std::time::Duration;

/// Keys that are issued together are replaced within so long: each replacement restarts what reads the Secret.
const APART: Duration = Duration::from_secs(3600);

/// The declared period, shortened by a part of its tenth that depends on the ApiKey's uid. More is left than the overlap,
/// so that never two old keys work.
pub fn shortened(declared: Duration, overlap: Duration, uid: &str) -> Duration {
    let room = declared.saturating_sub(overlap) / 2;
    let most = (declared / 10).min(APART).min(room);
    declared - most.mul_f64(fraction(uid))
}

/// A number from 0 to 1: the first eight digits of the uid, which the API server draws.
fn fraction(uid: &str) -> f64 {
    let digits = uid.get(..8).unwrap_or_default();
    let drawn = u32::from_str_radix(digits, 16).unwrap_or(0);
    f64::from(drawn) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;
    const FIRST: &str = "00000000-0000-4000-8000-000000000000";
    const LAST: &str = "ffffffff-0000-4000-8000-000000000000";

    fn seconds(declared: u64, overlap: u64, uid: &str) -> u64 {
        let seconds = Duration::from_secs;
        shortened(seconds(declared), seconds(overlap), uid).as_secs()
    }

    #[test]
    fn keys_of_one_moment_are_replaced_apart_and_never_later_than_declared() {
        let week = 168 * HOUR;
        assert_eq!(seconds(week, 24 * HOUR, FIRST), week);
        assert_eq!(seconds(week, 24 * HOUR, LAST), 167 * HOUR);
        assert_eq!(seconds(HOUR, 0, LAST), HOUR - 360);
        let middle = seconds(HOUR, 0, "80000000-0000-4000-8000-000000000000");
        assert_eq!(middle, HOUR - 181);
    }

    #[test]
    fn a_period_stays_longer_than_its_overlap() {
        assert_eq!(seconds(HOUR, HOUR - 10, LAST), HOUR - 5);
        assert_eq!(seconds(HOUR, HOUR - 1, LAST), HOUR - 1);
    }

    #[test]
    fn a_uid_that_is_none_changes_nothing() {
        assert_eq!(seconds(HOUR, 0, "uid-of-acme"), HOUR);
    }
}
