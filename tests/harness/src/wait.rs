//! Waiting for a condition, never for a while.

mod budget;

use std::time::Duration;

use anyhow::{Context, Error, Result};
use tokio::time::{Instant, sleep, timeout};

pub use budget::Budget;

/// Pause between the first checks, or as long as a check takes: checking must not slow the checked server
/// down.
const PAUSE: Duration = Duration::from_millis(25);
/// The longer a wait has lasted, the less a late check adds to it: the pause is a tenth of the wait so far,
/// …
const SHARE: u32 = 10;
/// … and at most this.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Waits until `condition` is `Ok` and returns its value. An `Err` means "not yet" and describes the state:
/// the last one is part of the error that ends the wait, so a failing test shows what it saw instead of
/// what it wanted.
///
/// When the time is over, there is one more whole check; see [`Budget`].
pub async fn wait_until<T>(
    what: &str,
    within: Duration,
    condition: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    wait_until_every(PAUSE, what, within, condition).await
}

/// Waits like [`wait_until`], with at least `pause` between two checks, for checks that cost much.
pub async fn wait_until_every<T>(
    pause: Duration,
    what: &str,
    within: Duration,
    mut condition: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let mut budget = Budget::of(within);
    let mut seen: Option<Error> = None;
    let start = Instant::now();
    loop {
        let is_last = budget.left().is_zero();
        let time = if is_last {
            budget.on_the_clock()
        } else {
            budget.left()
        };
        let begun = Instant::now();
        match timeout(time, condition()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(not_yet)) => seen = Some(not_yet),
            // What an earlier check has seen says more.
            Err(_) => {}
        }
        if is_last {
            let seen = seen.unwrap_or_else(|| Error::msg("no check of it has ended"));
            return Err(seen).with_context(|| format!("waited {within:?} for {what}"));
        }
        let took = begun.elapsed();
        budget.looked(took);
        let waited = start.elapsed() / SHARE;
        let asked = pause.max(took).max(waited.min(LONGEST_PAUSE));
        let asked = asked.min(budget.left());
        let begun = Instant::now();
        sleep(asked).await;
        budget.paused(asked, begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use anyhow::bail;
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// Waits for the look of this number.
    async fn wait_for_look(number: u32) -> Result<()> {
        let looks = Cell::new(0);
        wait_until("it", LIMIT, async || {
            looks.set(looks.get() + 1);
            match looks.get() {
                look if look == number => Ok(()),
                look => bail!("look {look}"),
            }
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_stands_still_costs_a_look_and_not_the_limit() {
        let stall = async {
            tokio::task::yield_now().await;
            advance(3 * LIMIT).await;
        };
        let (waited, ()) = tokio::join!(wait_for_look(20), stall);
        waited.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_does_not_end_is_followed_by_a_whole_one() {
        let looks = Cell::new(0);
        let waited = wait_until("it", LIMIT, async || {
            looks.set(looks.get() + 1);
            if looks.get() == 1 {
                pending::<()>().await;
            }
            sleep(2 * LIMIT).await;
            Ok(())
        });
        waited.await.unwrap();
        assert_eq!(looks.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_in_vain_ends_at_its_limit_and_a_hanging_one_at_five_times_that() {
        let begun = Instant::now();
        let error = wait_for_look(u32::MAX).await.unwrap_err();
        assert!((LIMIT..LIMIT + 2 * PAUSE).contains(&begun.elapsed()));
        assert!(format!("{error:#}").starts_with("waited 10s for it: look "));

        let begun = Instant::now();
        let hanging = wait_until("it", LIMIT, pending::<Result<()>>);
        let error = format!("{:#}", hanging.await.unwrap_err());
        assert!((5 * LIMIT..5 * LIMIT + 2 * PAUSE).contains(&begun.elapsed()));
        assert_eq!(error, "waited 10s for it: no check of it has ended");
    }
}
