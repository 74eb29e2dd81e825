//! Waiting for a condition, never for a while.

use std::time::Duration;

use anyhow::{Context, Error, Result};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Between two looks at the world, or as long as a look takes: looking must not slow down what is looked at.
const PAUSE: Duration = Duration::from_millis(25);

/// Waits until `condition` is `Ok` and returns its value. An `Err` means "not
/// yet" and says how the world looks: the last one is part of the error that
/// ends the wait, so a failing test shows what it saw instead of what it wanted.
pub async fn wait_until<T>(
    what: &str,
    within: Duration,
    condition: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    wait_until_every(PAUSE, what, within, condition).await
}

/// The same with at least `pause` between two looks, for looks that cost much.
pub async fn wait_until_every<T>(
    pause: Duration,
    what: &str,
    within: Duration,
    mut condition: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let deadline = Instant::now() + within;
    let mut last: Option<Error> = None;
    let looking = async {
        loop {
            let start = Instant::now();
            match condition().await {
                Ok(value) => return value,
                Err(not_yet) => last = Some(not_yet),
            }
            sleep_until(Instant::now() + pause.max(start.elapsed())).await;
        }
    };
    let seen = timeout_at(deadline, looking).await;
    seen.map_err(|_| last.unwrap_or_else(|| Error::msg("the first look at it did not end")))
        .with_context(|| format!("waited {within:?} for {what}"))
}
