//! Questions at a fixed pace, and how long 99 of 100 answers take at most.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::load::Slice;

/// From one question of an asker to its next. All together ask for a small part of what the server can
/// answer: its own queue is not what is measured.
const PACE: Duration = Duration::from_millis(40);

/// Lets all ask for a slice. Returns the time that 99 of 100 answers took at most.
pub async fn p99(
    askers: impl ExactSizeIterator<Item = impl AsyncFnMut() -> Result<()>>,
    slice: Slice,
) -> Result<Duration> {
    let (begin, count) = (Instant::now(), askers.len() as f64);
    let asking = askers.enumerate().map(|(number, ask)| {
        // Each one's turn comes at another time.
        let first = begin + PACE.mul_f64(number as f64 / count);
        keep_asking(ask, begin, first, slice)
    });
    let mut times = try_join_all(asking).await?.concat();
    times.sort_unstable();
    let place = times.len().saturating_sub(1) * 99 / 100;
    times.get(place).copied().context("nothing was answered")
}

async fn keep_asking(
    mut ask: impl AsyncFnMut() -> Result<()>,
    begin: Instant,
    first: Instant,
    slice: Slice,
) -> Result<Vec<Duration>> {
    let mut turns = interval_at(first, PACE);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut times = Vec::new();
    while begin.elapsed() < slice.warm_up + slice.counted {
        turns.tick().await;
        let asked = Instant::now();
        ask().await?;
        if asked - begin >= slice.warm_up {
            times.push(asked.elapsed());
        }
    }
    Ok(times)
}
