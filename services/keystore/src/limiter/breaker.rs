//! Breaker that stops requests to Redis: after some failures in a row no request waits for it, until a probe has found
//! it back.

use tokio::time::Instant;

/// Failures in a row after which nobody asks any longer. One alone may be a lost packet, or a Redis
/// that forks for a snapshot.
const FAILURES: u32 = 5;

/// Breaker of one limiter. Connections live on the worker that made them, and one that is broken says nothing about
/// another's: so each worker has its own.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Breaker {
    failures: u32,
    /// Time at which the last of them was noticed.
    noticed: Option<Instant>,
}

impl Breaker {
    /// Whether requests are decided without Redis.
    pub(super) fn is_open(self) -> bool {
        self.failures >= FAILURES
    }

    /// Notes that Redis decided a request. One that was under way when the breaker opened does not close it.
    pub(super) fn succeeded(&mut self) {
        if !self.is_open() {
            self.failures = 0;
        }
    }

    /// Notes at `now` the failure of a question that was asked at `asked`. Returns whether the breaker opened just
    /// then.
    ///
    /// One pause of Redis fails all questions that are under way: together they count once.
    pub(super) fn failed(&mut self, asked: Instant, now: Instant) -> bool {
        if self.noticed.is_some_and(|noticed| asked < noticed) {
            return false;
        }
        self.noticed = Some(now);
        self.failures = (self.failures + 1).min(FAILURES + 1);
        self.failures == FAILURES
    }

    /// Closes the breaker once a probe has found Redis back. Returns whether it was open.
    pub(super) fn close(&mut self) -> bool {
        std::mem::take(self).is_open()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Breaker with so many failures, each of a question that was asked when the one before was known.
    fn after(failures: u32) -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..failures {
            breaker.fails();
        }
        breaker
    }

    impl Breaker {
        fn fails(&mut self) -> bool {
            let now = Instant::now();
            self.failed(now, now)
        }
    }

    #[test]
    fn five_failures_in_a_row_open_it() {
        assert!(!after(4).is_open());
        assert!(after(5).is_open());
        assert!(after(50).is_open());
    }

    #[test]
    fn questions_that_fail_together_count_once() {
        let mut breaker = after(3);
        let asked = Instant::now();
        let pause = Duration::from_millis(80);
        for number in 0..64 {
            let asked = asked + Duration::from_millis(number);
            assert!(!breaker.failed(asked, asked + pause));
        }
        assert!(!breaker.is_open());
        assert!(breaker.failed(asked + pause, asked + 2 * pause));
    }

    #[test]
    fn a_success_between_failures_keeps_it_closed() {
        let mut breaker = after(4);
        breaker.succeeded();
        breaker.fails();
        assert!(!breaker.is_open());
    }

    #[test]
    fn it_opens_once_and_only_a_probe_closes_it() {
        let mut breaker = after(4);
        assert!(breaker.fails());
        assert!(!breaker.fails());
        breaker.succeeded();
        assert!(breaker.is_open());
        assert!(breaker.close());
        assert!(!breaker.is_open() && !breaker.close());
    }
}
