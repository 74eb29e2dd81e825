//! How long a failing object waits: longer each time, and not all objects at once.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The first pause; create and delete have two seconds in all.
const FIRST: Duration = Duration::from_millis(250);
/// The longest pause: what comes back is noticed within it.
const LONGEST: Duration = Duration::from_secs(30);

/// Failures in a row, by the object's uid.
#[derive(Debug, Default)]
pub struct Backoff(Mutex<HashMap<String, u32>>);

impl Backoff {
    /// The object failed once more: how long it waits. Between three and five quarters of the
    /// exponential pause, by the object, so that those which failed together come back apart.
    pub fn failed(&self, uid: &str) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = failures.entry(uid.to_owned()).or_insert(0);
        let pause = (FIRST * 2_u32.saturating_pow(*failure)).min(LONGEST);
        *failure = (*failure + 1).min(16);
        let mut hasher = DefaultHasher::new();
        (uid, *failure).hash(&mut hasher);
        let part = 750 + (hasher.finish() % 500) as u32;
        pause * part / 1000
    }

    /// The object is well again.
    pub fn succeeded(&self, uid: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew_after_a_success() {
        let backoff = Backoff::default();
        let pauses: Vec<Duration> = (0..20).map(|_| backoff.failed("a")).collect();
        assert!(
            pauses[0] < FIRST * 5 / 4
                && pauses[19] >= LONGEST * 3 / 4
                && pauses[19] <= LONGEST * 5 / 4
        );
        backoff.succeeded("a");
        assert!(backoff.failed("a") < FIRST * 5 / 4);
    }
}
