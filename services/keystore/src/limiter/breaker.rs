//! Whether Redis is worth asking: after some failures in a row no request waits for it, until a
//! probe has found it back.

/// Failures in a row after which nobody asks any longer. One alone may be a lost packet.
const FAILURES: u32 = 5;

/// One limiter's breaker. Connections live on the worker that made them, and one that is broken
/// says nothing about another's: so each worker has its own.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Breaker {
    failures: u32,
}

impl Breaker {
    /// Whether requests are decided without Redis.
    pub(super) fn is_open(self) -> bool {
        self.failures >= FAILURES
    }

    /// Redis decided a request. One that was under way when the breaker opened does not close it.
    pub(super) fn succeeded(&mut self) {
        if !self.is_open() {
            self.failures = 0;
        }
    }

    /// Redis failed. Answers whether the breaker opened just then.
    pub(super) fn failed(&mut self) -> bool {
        self.failures = (self.failures + 1).min(FAILURES + 1);
        self.failures == FAILURES
    }

    /// A probe has found Redis back. Answers whether the breaker was open.
    pub(super) fn close(&mut self) -> bool {
        std::mem::take(self).is_open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(failures: u32) -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..failures {
            breaker.failed();
        }
        breaker
    }

    #[test]
    fn five_failures_in_a_row_open_it() {
        assert!(!after(4).is_open());
        assert!(after(5).is_open());
        assert!(after(50).is_open());
    }

    #[test]
    fn a_success_between_failures_keeps_it_closed() {
        let mut breaker = after(4);
        breaker.succeeded();
        breaker.failed();
        assert!(!breaker.is_open());
    }

    #[test]
    fn it_opens_once_and_only_a_probe_closes_it() {
        let mut breaker = after(4);
        assert!(breaker.failed());
        assert!(!breaker.failed());
        breaker.succeeded();
        assert!(breaker.is_open());
        assert!(breaker.close());
        assert!(!breaker.is_open() && !breaker.close());
    }
}
