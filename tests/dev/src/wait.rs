//! Waiting for a condition with a deadline.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use water_harness::Budget;

/// How often a condition is asked for again: short against what is waited for, long against asking.
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

/// Asks `condition` until it answers `Some`, or gives up after `limit` with [`Late`]: after one more look, and however
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_never_holds_is_given_up_with_its_name() {
        let error = until::<()>(Duration::ZERO, "the node is Ready", || Ok(None)).unwrap_err();
        assert_eq!(error.to_string(), "the node is Ready: not within 0 s");
    }

    #[test]
    fn a_condition_is_asked_until_it_holds() {
        let mut asked = 0;
        let third = until(Duration::from_secs(60), "third time", || {
            asked += 1;
            Ok((asked == 3).then_some(asked))
        });
        assert_eq!(third.unwrap(), 3);
    }
}
