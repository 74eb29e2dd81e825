//! Pauses of failing objects: longer each time, and spread so that not all objects end theirs at once.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use crate::lock::lock;

/// The first pause; create and delete have two seconds in all.
const FIRST: Duration = Duration::from_millis(250);

/// Failures in a row, by the object's uid.
#[derive(Debug, Default)]
pub struct Backoff(Mutex<HashMap<String, u32>>);

impl Backoff {
    /// Counts a failure of the object; returns its pause: twice as long each time up to `longest`, [`spread`] by
    /// `chance`.
    pub fn failed(&self, uid: &str, longest: Duration, chance: u32) -> Duration {
        let mut failures = lock(&self.0);
        let failure = failures.entry(uid.to_owned()).or_insert(0);
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(*failure));
        *failure = (*failure + 1).min(16);
        spread(pause.min(longest), chance)
    }

    /// Failures in a row so far, at most 16.
    pub fn failures(&self, uid: &str) -> u32 {
        lock(&self.0).get(uid).copied().unwrap_or(0)
    }

    pub fn succeeded(&self, uid: &str) {
        lock(&self.0).remove(uid);
    }

    pub fn retain(&self, living: &HashSet<String>) {
        lock(&self.0).retain(|uid, _| living.contains(uid));
    }
}

/// Three to five quarters of a pause, so that objects which wait for one thing come back apart.
pub fn spread(pause: Duration, chance: u32) -> Duration {
    pause * (750 + chance % 500) / 1000
}

/// A random number to [`spread`] by. Without randomness the pauses are just not spread.
pub fn chance() -> u32 {
    getrandom::u32().unwrap_or(250)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(30);

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew_after_a_success() {
        let backoff = Backoff::default();
        let pauses: Vec<Duration> = (0..20).map(|_| backoff.failed("a", LONGEST, 250)).collect();
        assert_eq!(
            (pauses[0], pauses[1], pauses[19]),
            (FIRST, FIRST * 2, LONGEST)
        );
        assert_eq!(backoff.failed("b", LONGEST, 250), FIRST);
        backoff.succeeded("a");
        assert_eq!(backoff.failed("a", LONGEST, 250), FIRST);
        backoff.failed("a", LONGEST, 250);
        backoff.retain(&HashSet::new());
        assert_eq!(backoff.failed("a", LONGEST, 250), FIRST);
    }

    #[test]
    fn a_pause_is_spread_by_a_quarter_to_both_sides() {
        assert_eq!(spread(LONGEST, 0), LONGEST * 3 / 4);
        assert!(spread(LONGEST, 499) < LONGEST * 5 / 4);
        assert_ne!(spread(LONGEST, 7), spread(LONGEST, 8));
    }
}
