//! Outages of Redis. Until the grace is over this gate serves from its copy of the key directory and by its share of
//! the limits; after that it refuses everything, because a key may have been revoked and a limit used up elsewhere.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::interval;
use tracing::{error, info, warn};
use water_keystore::{Reason, Replica, Standby};

/// Interval of the checks; the log may be late by this much.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Way of deciding requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Redis decides.
    Exact,
    /// Redis cannot decide: this gate's share of the limits does.
    Degraded(Option<Reason>),
    /// The grace is over: every request is refused.
    Refusing(Option<Reason>),
}

/// The grace of one gate process.
#[derive(Debug)]
pub struct Grace {
    /// Length of the grace.
    pub length: Duration,
    /// Key directory, with the time of this gate's last lease renewal.
    pub directory: Arc<Replica>,
    /// Fallback limiter, with the time since which the limiter's Redis has failed.
    pub standby: Arc<Standby>,
}

impl Grace {
    /// Whether the grace is over: it runs from the lease's last renewal, or from the limiter's first failure since its
    /// last success.
    pub fn is_over(&self) -> bool {
        let over = |since: Option<Duration>| since.is_some_and(|since| since > self.length);
        over(self.directory.since_renewal()) || over(self.standby.failing_for())
    }

    /// Returns the current mode.
    pub fn mode(&self) -> Mode {
        let standby = self.standby.status();
        let reason = standby.failing.map(|(reason, _)| reason);
        if self.is_over() {
            Mode::Refusing(reason.or(self.directory.status().failure))
        } else if standby.degraded {
            Mode::Degraded(reason)
        } else {
            Mode::Exact
        }
    }

    /// Logs each change while it is polled.
    pub async fn watch(&self) -> Infallible {
        let mut looks = interval(LOOK_EVERY);
        let mut last = Mode::Exact;
        loop {
            looks.tick().await;
            let mode = self.mode();
            if mode.differs_from(last) {
                mode.log();
                last = mode;
            }
        }
    }
}

impl Mode {
    /// All words that [`Mode::as_str`] returns.
    pub const ALL: [&str; 3] = ["exact", "degraded", "refusing"];

    /// Returns a stable word for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Degraded(_) => "degraded",
            Self::Refusing(_) => "refusing",
        }
    }

    fn reason(self) -> Option<Reason> {
        match self {
            Self::Exact => None,
            Self::Degraded(reason) | Self::Refusing(reason) => reason,
        }
    }

    /// Whether the mode is a change to log. Between two failures the reason may be missing: that is no change.
    fn differs_from(self, last: Self) -> bool {
        let other_reason = self.reason().is_some() && self.reason() != last.reason();
        self.as_str() != last.as_str() || other_reason
    }

    fn log(self) {
        let (mode, reason) = (self.as_str(), self.reason().map_or("none", Reason::as_str));
        match self {
            Self::Exact => info!(mode, "Redis decides the limits again"),
            Self::Degraded(_) => warn!(
                mode,
                reason, "Redis cannot decide: this gate's share of the limits does"
            ),
            Self::Refusing(_) => error!(
                mode,
                reason, "Redis has been away for longer than the grace: every request is refused"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_mode_or_reason_is_a_change_and_a_missing_reason_is_none() {
        let slow = Mode::Degraded(Some(Reason::Slow));
        assert!(slow.differs_from(Mode::Exact));
        assert!(slow.differs_from(Mode::Degraded(Some(Reason::Down))));
        assert!(Mode::Refusing(Some(Reason::Slow)).differs_from(slow));
        assert!(!slow.differs_from(slow));
        assert!(!Mode::Degraded(None).differs_from(slow));
        assert!(Mode::Exact.differs_from(slow));
    }
}
