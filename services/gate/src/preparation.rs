//! The gate is not ready before the limiters of all workers are connected: the first request would
//! spend its time on connecting.

use std::convert::Infallible;
use std::future::pending;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use tracing::debug;
use water_keystore::Limiter;
use water_runtime::Latch;
use water_runtime::telemetry::chain;

/// Pause after a failure, as the key directory makes it.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Counts the workers whose limiter is not connected yet; the last one sets the latch.
#[derive(Debug)]
pub struct Preparation {
    missing: AtomicUsize,
    latch: Latch,
}

impl Preparation {
    /// Of so many workers.
    pub fn new(workers: NonZeroUsize, latch: Latch) -> Self {
        Self {
            missing: AtomicUsize::new(workers.get()),
            latch,
        }
    }

    /// Connects one worker's limiter, and stays: it runs beside the worker's requests.
    pub async fn of(&self, limiter: &Limiter) -> Infallible {
        while let Err(error) = limiter.prepare().await {
            debug!(error = chain(&error), "the limiter is not connected yet");
            sleep(RETRY_AFTER).await;
        }
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.latch.set();
        }
        pending().await
    }
}
