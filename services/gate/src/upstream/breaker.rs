//! Circuit breaker: knows when a service does not answer, so that no client waits in vain, and lets a request through
//! often enough to notice its return.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row until the service counts as down, the same as the limiter's. One pod that ends during requests
/// costs one or two of them, with good answers of the others between them.
const FAILURES: u32 = 5;
/// Interval of the requests that go through to a service that is down; a client's `Retry-After` is four times as long.
/// A service that hangs makes each of these clients wait for the deadline; one that is back is noticed at once.
const PROBE_EVERY: Duration = Duration::from_millis(500);

/// Outcomes of the last exchanges with one service. The lock is never contended: a breaker belongs to one worker
/// thread.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Failures since the last answer.
    failures: u32,
    /// Time of the next probe, while the service is down.
    probe_at: Option<Instant>,
}

impl Breaker {
    /// Whether a request may be sent at `now`. Does not reserve the probe: the caller may still be refused for another
    /// reason, and must not keep the probe from others then.
    pub(super) fn allows(&self, now: Instant) -> bool {
        self.lock().probe_at.is_none_or(|at| at <= now)
    }

    /// Records that a request is sent; the next one has to wait if the service is down.
    pub(super) fn sent(&self, now: Instant) {
        if let Some(at) = &mut self.lock().probe_at {
            *at = now + PROBE_EVERY;
        }
    }

    /// Records an answer. Returns true if the service was down until then.
    pub(super) fn answered(&self) -> bool {
        let mut state = self.lock();
        state.failures = 0;
        state.probe_at.take().is_some()
    }

    /// Records a failure. Returns true if the service counts as down from here on.
    pub(super) fn failed(&self, now: Instant) -> bool {
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        if state.failures < FAILURES {
            return false;
        }
        let known = state.probe_at.replace(now + PROBE_EVERY);
        known.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a breaker of a service that has failed five times in a row at `now`.
    fn open(now: Instant) -> Breaker {
        let breaker = Breaker::default();
        let opened: Vec<_> = (0..FAILURES).map(|_| breaker.failed(now)).collect();
        assert_eq!(opened, [false, false, false, false, true]);
        breaker
    }

    #[test]
    fn five_failures_in_a_row_stop_requests_and_four_do_not() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..10 {
            (1..FAILURES).for_each(|_| assert!(!breaker.failed(now)));
            assert!(breaker.allows(now));
            breaker.answered();
        }
        assert!(!open(now).allows(now));
    }

    #[test]
    fn one_request_in_half_a_second_goes_through() {
        let now = Instant::now();
        let breaker = open(now);
        assert!(!breaker.allows(now + PROBE_EVERY / 2));
        let probe = now + PROBE_EVERY;
        assert!(breaker.allows(probe));
        assert!(breaker.allows(probe), "asking takes nothing");
        breaker.sent(probe);
        assert!(!breaker.allows(probe));
        assert!(breaker.allows(probe + PROBE_EVERY));
    }

    #[test]
    fn a_request_that_hung_is_followed_by_half_a_second_of_quick_refusals() {
        let now = Instant::now();
        let breaker = open(now);
        let ended = now + PROBE_EVERY * 10;
        breaker.sent(now + PROBE_EVERY);
        assert!(!breaker.failed(ended), "it was known");
        assert!(!breaker.allows(ended + PROBE_EVERY / 2));
        assert!(breaker.allows(ended + PROBE_EVERY));
    }

    #[test]
    fn an_answer_lets_all_requests_through_again() {
        let now = Instant::now();
        let breaker = open(now);
        assert!(breaker.answered());
        assert!(breaker.allows(now));
        assert!(!breaker.answered(), "it is told once");
        assert!(!breaker.failed(now), "and counted anew");
    }
}
