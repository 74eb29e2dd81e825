//! Difference between the gates' clock and this service's. It is reported long before it costs a request, which it does
//! beyond [`crate::identity::LEEWAY`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tracing::{info, warn};

/// Smallest difference to report. Clocks that NTP keeps differ by milliseconds, and a request takes less than this.
const WORTH_TELLING: Duration = Duration::from_secs(5);

/// Last difference shown by a signed identity. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ClockSkew {
    seconds: Gauge<f64, AtomicU64>,
    /// Set while the difference is a reported one, so that each is logged once.
    told: Arc<AtomicBool>,
}

impl ClockSkew {
    /// Registers `identity_clock_skew_seconds`.
    pub fn register(&self, metrics: &mut Registry) {
        metrics.register(
            "identity_clock_skew_seconds",
            "How far the gates' clock, which is Redis', was ahead of this service's",
            self.seconds.clone(),
        );
    }

    /// Records how many milliseconds the gates' clock is ahead; negative: behind.
    pub fn note(&self, ahead: i64) {
        let skew_seconds = ahead as f64 / 1000.0;
        self.seconds.set(skew_seconds);
        let wrong = u128::from(ahead.unsigned_abs()) >= WORTH_TELLING.as_millis();
        match (self.told.swap(wrong, Relaxed), wrong) {
            (false, true) => warn!(
                skew_seconds,
                "the clock of Redis differs from this service's: set the wrong one right"
            ),
            (true, false) => info!(skew_seconds, "the clock of Redis is this service's again"),
            _ => {}
        }
    }
}
