//! Waiting for a condition with a deadline.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use water_harness::Budget;

/// Pause between the first checks of a condition.
const INTERVAL: Duration = Duration::from_millis(50);
/// The longer a wait has lasted, the less a late check adds to it: the pause is a tenth of the wait so far, …
const SHARE: u32 = 10;
/// … and at most this. Many checks start a kubectl, which takes as much of a core as a pod that starts.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A condition that did not hold in time.
#[derive(Debug)]
pub struct Late {
    what: String,
    limit: Duration,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: not within {} s", self.what, self.limit.as_secs())
    }
}

impl std::error::Error for Late {}

/// Checks `condition` until it returns `Some`, or fails after `limit` with [`Late`]: after one more check, and however
/// little of the limit a machine that stood still has used up ([`Budget`]).
#[expect(
    clippy::disallowed_methods,
    reason = "a deadline is kept on the monotonic clock, here and nowhere else"
)]
pub fn until<T>(
    limit: Duration,
    what: &str,
    mut condition: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let mut budget = Budget::of(limit);
    let start = Instant::now();
    loop {
        let is_last = budget.left().is_zero();
        let begun = Instant::now();
        if let Some(value) = condition()? {
            return Ok(value);
        }
        if is_last {
            return Err(Late {
                what: what.to_owned(),
                limit,
            }
            .into());
        }
        let took = begun.elapsed();
        budget.looked(took);
        let asked = pause(start.elapsed(), took).min(budget.left());
        let begun = Instant::now();
        thread::sleep(asked);
        budget.paused(asked, begun.elapsed());
    }
}

/// Returns the pause after a check that took so long, so far into a wait: checking must not slow down what is waited
/// for.
fn pause(waited: Duration, took: Duration) -> Duration {
    INTERVAL.max(took.max(waited / SHARE).min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_become_rarer_the_longer_one_takes_or_a_wait_lasts() {
        let [none, second] = [Duration::ZERO, Duration::from_secs(1)];
        assert_eq!(pause(none, none), INTERVAL);
        let fifth = Duration::from_millis(200);
        assert_eq!(pause(none, fifth), fifth);
        assert_eq!(pause(2 * second, none), fifth);
        assert_eq!(pause(none, second), LONGEST_PAUSE);
        assert_eq!(pause(60 * second, none), LONGEST_PAUSE);
    }
}
