//! The gate is not ready before the limiters of all workers have tried to connect: the first request
//! would spend its time on it. A Redis that does not answer in time keeps no gate from serving.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tracing::{debug, warn};
use water_keystore::Limiter;
use water_runtime::Latch;
use water_runtime::telemetry::chain;

/// Pause after a failure, as the key directory makes it.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// A connection that is not made by then is left to the limiter, which serves without it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Counts the workers whose limiter is not prepared yet; the last one sets the latch.
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

    /// Connects one worker's limiter and brings it back after failures: it runs beside the worker's
    /// requests.
    pub async fn of(&self, limiter: &Limiter) -> Infallible {
        let connected = async {
            while let Err(error) = limiter.prepare().await {
                debug!(error = chain(&error), "the limiter is not connected yet");
                sleep(RETRY_AFTER).await;
            }
        };
        if timeout(PATIENCE, connected).await.is_err() {
            warn!("the limiter could not be connected; this gate's share of the limits decides");
        }
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.latch.set();
        }
        limiter.attend().await
    }
}
