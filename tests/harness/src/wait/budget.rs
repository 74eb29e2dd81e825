//! The time that a wait may take, of which a machine that stands still uses little.

use std::time::Duration;

/// How many times its limit a wait lasts at most on the clock.
const MOST: u32 = 5;

/// What a wait has left of its limit.
///
/// A look counts as long as it takes, and a pause at most twice what was asked for: while the whole machine stands still,
/// nothing of what is waited for could happen.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    left: Duration,
    clock: Duration,
}

impl Budget {
    /// The budget of a wait with this limit, before its first look.
    pub fn of(limit: Duration) -> Self {
        Self {
            left: limit,
            clock: limit * MOST,
        }
    }

    /// Spends the time of a look.
    pub fn looked(&mut self, took: Duration) {
        self.spend(took, took);
    }

    /// Spends the time of a pause that was to last as long as `asked`.
    pub fn paused(&mut self, asked: Duration, took: Duration) {
        self.spend(took.min(asked * 2), took);
    }

    fn spend(&mut self, counted: Duration, took: Duration) {
        self.left = self.left.saturating_sub(counted);
        self.clock = self.clock.saturating_sub(took);
    }

    /// What is left; with nothing left there is one more look, and no pause before it.
    pub fn left(self) -> Duration {
        self.left.min(self.clock)
    }

    /// What is left on the clock: the time of the last look.
    pub fn on_the_clock(self) -> Duration {
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_look_counts_in_full() {
        let mut budget = Budget::of(10 * SECOND);
        budget.looked(4 * SECOND);
        assert_eq!(budget.left(), 6 * SECOND);
        budget.looked(7 * SECOND);
        assert_eq!(budget.left(), Duration::ZERO);
        assert_eq!(budget.on_the_clock(), 39 * SECOND);
    }

    #[test]
    fn a_pause_counts_at_most_twice_what_was_asked_for() {
        let mut budget = Budget::of(10 * SECOND);
        budget.paused(SECOND, SECOND);
        assert_eq!(budget.left(), 9 * SECOND);
        budget.paused(SECOND, 30 * SECOND);
        assert_eq!(budget.left(), 7 * SECOND);
    }

    #[test]
    fn no_wait_lasts_longer_than_five_times_its_limit() {
        let mut budget = Budget::of(10 * SECOND);
        budget.paused(SECOND, 49 * SECOND);
        assert_eq!(budget.left(), SECOND);
        budget.paused(SECOND, SECOND);
        assert_eq!((budget.left(), budget.on_the_clock()), Default::default());
    }
}
