//! Redis' clock, carried on by this machine's monotonic one: expiry is judged alike by every gate.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio::time::Instant;
use water_domain::Timestamp;

/// The last reading of Redis' TIME, as what must be added to the monotonic clock. Read on every
/// request, so without a lock.
#[derive(Debug)]
pub(super) struct Clock {
    /// Origin of this clock's monotonic milliseconds.
    began: Instant,
    /// Redis' time at `began`, in ms; [`NEVER`] before the first reading.
    epoch: AtomicI64,
}

const NEVER: i64 = i64::MIN;

impl Clock {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            epoch: AtomicI64::new(NEVER),
        }
    }

    /// Notes that the server read `server` ms at some moment between `sent` and `received`; the
    /// middle is off by half of the round trip at most.
    pub(super) fn set(&self, server: i64, sent: Instant, received: Instant) {
        let read = sent + received.saturating_duration_since(sent) / 2;
        self.epoch
            .store(server - self.millis(read), Ordering::Release);
    }

    /// Redis' time at `now`, or `None` before the first reading.
    pub(super) fn at(&self, now: Instant) -> Option<Timestamp> {
        match self.epoch.load(Ordering::Acquire) {
            NEVER => None,
            epoch => Timestamp::from_millis(epoch + self.millis(now)),
        }
    }

    fn millis(&self, moment: Instant) -> i64 {
        moment.saturating_duration_since(self.began).as_millis() as i64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_servers_clock_goes_on_with_the_monotonic_one() {
        let sent = Instant::now();
        let clock = Clock::new(sent);
        assert_eq!(clock.at(sent), None);
        clock.set(5_000, sent, sent + Duration::from_millis(20));
        let later = clock.at(sent + Duration::from_millis(110)).unwrap();
        assert_eq!(later.as_millis(), 5_100);
    }
}
