//! The limiter's answer, and the values of the response headers about it.

use std::time::Duration;

use water_domain::{Limits, Timestamp};

/// Acceptance of a request, and both windows after it. [`crate::Quotas`] asks for the windows only, and `accepted` is
/// false.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Whether both windows had room; both were then charged, otherwise neither.
    pub accepted: bool,
    /// Redis' time of the decision.
    pub at: Timestamp,
    /// Window of any 60 000 ms.
    pub minute: Window,
    /// Window of the UTC calendar day.
    pub day: Window,
    /// Time until the slot of the minute opens that a refusal tells: the minute's next one, or a later one where other
    /// refusals have told the earlier ones.
    pub slot_opens_in: Duration,
}

/// State of one window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Requests that the plan allows in it.
    pub limit: u32,
    /// Requests that it would still accept.
    pub remaining: u32,
    /// Time until its next slot opens.
    pub opens_in: Duration,
}

impl Window {
    fn new(limit: u32, used: i64, opens_in_micros: i64) -> Option<Self> {
        Some(Self {
            limit,
            // A key of a larger plan of the same account may have used more than this plan allows.
            remaining: limit.saturating_sub(u32::try_from(used).ok()?),
            opens_in: Duration::from_micros(opens_in_micros.try_into().ok()?),
        })
    }

    /// Whole seconds until the next slot opens, rounded up: a client that waits so long finds it open.
    pub fn opens_in_seconds(&self) -> u64 {
        whole_seconds(self.opens_in)
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl Decision {
    /// Reads the first six numbers of a script's reply.
    pub(crate) fn read(reply: &str, limits: Limits) -> Option<Self> {
        let numbers = reply.split_ascii_whitespace();
        let mut numbers = numbers.map(|number| number.parse::<i64>().ok());
        let mut next = || numbers.next()?;
        let (accepted, now) = (next()?, next()?);
        let (minute, minute_opens) = (next()?, next()?);
        let (day, day_opens) = (next()?, next()?);
        let minute = Window::new(limits.requests_per_minute.get(), minute, minute_opens)?;
        Some(Self {
            accepted: accepted == 1,
            at: Timestamp::from_millis(now / 1000)?,
            minute,
            day: Window::new(limits.requests_per_day.get(), day, day_opens)?,
            slot_opens_in: minute.opens_in,
        })
    }

    /// The window with fewer remaining requests, the minute on a tie: `X-RateLimit-*`.
    pub fn tightest(&self) -> Window {
        if self.day.remaining < self.minute.remaining {
            self.day
        } else {
            self.minute
        }
    }

    /// Time that a refused request has to wait: until its slot of the minute or the end of the day, the later one when
    /// both windows are full. `None`: it was accepted.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let windows = [
            (self.minute, self.slot_opens_in),
            (self.day, self.day.opens_in),
        ];
        let full = |window: Window| !self.accepted && window.remaining == 0;
        let waits = windows.into_iter().filter(|(window, _)| full(*window));
        waits.map(|(_, wait)| wait).max()
    }

    /// The time that a refused request has to wait, in whole seconds, rounded up and at least 1:
    /// the `Retry-After` header.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        Some(whole_seconds(self.retry_after()?).max(1))
    }

    /// Time at which `window` opens, in whole seconds since the epoch, rounded up: `X-RateLimit-Reset`.
    pub fn reset_epoch_seconds(&self, window: Window) -> i64 {
        let millis = self.at.as_millis() + window.opens_in.as_micros().div_ceil(1000) as i64;
        (millis + 999).div_euclid(1000)
    }

    /// Decision `elapsed` later, when nothing was charged since.
    pub(super) fn later(mut self, elapsed: Duration) -> Self {
        let millis = elapsed.as_millis() as i64;
        self.at = Timestamp::from_millis(self.at.as_millis() + millis).unwrap_or(self.at);
        self.minute.opens_in = self.minute.opens_in.saturating_sub(elapsed);
        self.day.opens_in = self.day.opens_in.saturating_sub(elapsed);
        self.slot_opens_in = self.slot_opens_in.saturating_sub(elapsed);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    fn decision(reply: &str) -> Decision {
        let number = |number| NonZeroU32::new(number).unwrap();
        let limits = Limits {
            requests_per_minute: number(3),
            requests_per_day: number(5),
        };
        Decision::read(reply, limits).unwrap()
    }

    #[test]
    fn a_reply_is_six_numbers() {
        let number = NonZeroU32::MIN;
        let limits = Limits {
            requests_per_minute: number,
            requests_per_day: number,
        };
        for bad in ["", "0 1 2 3 4", "0 1 2 3 4 x", "0 1 -2 3 4 5"] {
            assert_eq!(Decision::read(bad, limits), None, "{bad}");
        }
    }

    #[test]
    fn an_accepted_request_waits_for_nothing_even_when_it_took_the_last_slot() {
        let decision = decision("1 0 3 60000000 3 1");
        assert_eq!(
            (decision.retry_after(), decision.minute.remaining),
            (None, 0)
        );
    }

    #[test]
    fn a_refusal_waits_for_the_later_of_the_full_windows() {
        let minute = decision("0 0 3 1500001 4 9000000");
        assert_eq!(minute.retry_after_seconds(), Some(2));
        let both = decision("0 0 3 1500001 5 9000000");
        assert_eq!(both.retry_after_seconds(), Some(9));
    }

    #[test]
    fn a_refusal_waits_for_its_own_slot_and_the_window_still_names_the_first() {
        let refusal = Decision {
            slot_opens_in: Duration::from_millis(20_001),
            ..decision("0 0 3 1500001 4 9000000")
        };
        assert_eq!(refusal.retry_after_seconds(), Some(21));
        assert_eq!(refusal.minute.opens_in_seconds(), 2);
        assert_eq!(refusal.reset_epoch_seconds(refusal.tightest()), 2);
    }

    #[test]
    fn the_tightest_window_is_the_minute_on_a_tie() {
        assert_eq!(decision("1 0 1 0 3 0").tightest().limit, 3);
        assert_eq!(decision("1 0 1 0 4 0").tightest().limit, 5);
    }

    #[test]
    fn more_than_a_smaller_plan_allows_leaves_nothing() {
        assert_eq!(decision("0 0 100 1 100 1").minute.remaining, 0);
    }

    #[test]
    fn the_reset_is_rounded_up_to_a_second_at_which_the_slot_is_open() {
        let decision = decision("1 10400000 1 59600001 1 0");
        assert_eq!(decision.minute.opens_in_seconds(), 60);
        assert_eq!(decision.reset_epoch_seconds(decision.minute), 71);
    }
}
