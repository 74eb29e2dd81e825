//! Waiting for a condition with a deadline.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use water_harness::Budget;

/// Pause between two checks of a condition: short against what is waited for, long against checking.
const INTERVAL: Duration = Duration::from_millis(50);

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
        budget.looked(begun.elapsed());
        let begun = Instant::now();
        thread::sleep(INTERVAL);
        budget.paused(INTERVAL, begun.elapsed());
    }
}
