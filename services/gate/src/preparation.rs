//! Connecting the limiters. The gate is not ready before the limiters of all workers have tried to connect: the first
//! request would have to wait for it. A Redis that does not answer in time keeps no gate from serving.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tracing::{debug, warn};
use water_keystore::Limiter;
use water_runtime::Latch;
use water_runtime::telemetry::chain;

/// Pause after a failure, the same as the key directory's.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Time for the first connection; without one the limiter serves all the same, and connects later.
const PATIENCE: Duration = Duration::from_secs(2);

/// Counts the workers whose limiter is not prepared yet; the last one sets the latch.
#[derive(Debug)]
pub struct Preparation {
    missing: AtomicUsize,
    latch: Latch,
}

impl Preparation {
    /// Makes the count for so many workers.
    pub fn new(workers: NonZeroUsize, latch: Latch) -> Self {
        Self {
            missing: AtomicUsize::new(workers.get()),
            latch,
        }
    }

    /// Connects one worker's limiter and reconnects it after failures: it runs in parallel with the worker's requests.
    pub async fn keep_connected(&self, limiter: &Limiter) -> Infallible {
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
