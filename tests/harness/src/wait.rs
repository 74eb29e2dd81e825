//! Waiting for a condition, never for a while.

mod budget;

use std::collections::HashSet;
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
/// Times the limit of a step after which no state begins a step any more.
const STEPS: u32 = 10;

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
    condition: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    wait(pause, what, within, condition, |_: &Error| false).await
}

/// Waits like [`wait_until`] for something that comes step by step, such as a rollout: the limit is that of a step.
/// The wait begins again whenever the `Err` describes a state that no earlier one did, so that it ends where states
/// only come and go. `is_state` is false of an `Err` that describes none, such as that of a look that failed.
///
/// Once ten times the limit is over, the wait does not begin again: states that are always new do not keep it up.
pub async fn wait_for_steps<T>(
    what: &str,
    step: Duration,
    is_state: impl Fn(&Error) -> bool,
    condition: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let (begun, all) = (Instant::now(), step * STEPS);
    let mut seen = HashSet::new();
    let is_new = move |said: &Error| {
        begun.elapsed() < all && is_state(said) && seen.insert(format!("{said:#}"))
    };
    let what = format!("the next step of {what}, none of which begins after {all:?}");
    wait(PAUSE, &what, step, condition, is_new).await
}

/// Waits until `condition` is `Ok`, and begins again after each state of which `is_step` is true.
async fn wait<T>(
    pause: Duration,
    what: &str,
    within: Duration,
    mut condition: impl AsyncFnMut() -> Result<T>,
    mut is_step: impl FnMut(&Error) -> bool,
) -> Result<T> {
    let mut budget = Budget::of(within);
    let mut seen: Option<Error> = None;
    let mut start = Instant::now();
    loop {
        let is_last = budget.left().is_zero();
        let time = if is_last {
            budget.on_the_clock()
        } else {
            budget.left()
        };
        let begun = Instant::now();
        let mut begins_again = false;
        match timeout(time, condition()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(not_yet)) => {
                begins_again = is_step(&not_yet);
                seen = Some(not_yet);
            }
            // What an earlier check has seen says more.
            Err(_) => {}
        }
        if is_last && !begins_again {
            let seen = seen.unwrap_or_else(|| Error::msg("no check of it has ended"));
            return Err(seen).with_context(|| format!("waited {within:?} for {what}"));
        }
        let took = begun.elapsed();
        if begins_again {
            (budget, start) = (Budget::of(within), Instant::now());
        } else {
            budget.looked(took);
        }
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

    use anyhow::{bail, ensure};
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
    async fn a_wait_for_steps_lasts_as_long_as_there_are_new_ones() {
        let begun = Instant::now();
        let waited = wait_for_steps(
            "it",
            LIMIT,
            |_| true,
            async || {
                let step = begun.elapsed().as_secs() / 9;
                ensure!(step == 10, "step {step}");
                Ok(())
            },
        );
        waited.await.unwrap();
        assert!(begun.elapsed() >= 9 * LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_steps_ends_at_its_limit_after_the_last_new_one() {
        let begun = Instant::now();
        // A step begins every five seconds, and the fourth looks like the first.
        let waited = wait_for_steps(
            "it",
            LIMIT,
            |_| true,
            async || -> Result<()> { bail!("step {}", begun.elapsed().as_secs() / 5 % 3) },
        );
        let error = format!("{:#}", waited.await.unwrap_err());
        let end = 2 * LIMIT..2 * LIMIT + 4 * LONGEST_PAUSE;
        assert!(end.contains(&begun.elapsed()), "{:?}", begun.elapsed());
        let expected = "waited 10s for the next step of it, none of which begins after 100s: step ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_steps_that_never_end_ends_a_step_after_ten_times_its_limit() {
        let begun = Instant::now();
        let looks = Cell::new(0);
        let waited = wait_for_steps(
            "it",
            LIMIT,
            |_| true,
            async || -> Result<()> {
                looks.set(looks.get() + 1);
                bail!("look {}", looks.get())
            },
        );
        waited.await.unwrap_err();
        let end = 11 * LIMIT - LONGEST_PAUSE..11 * LIMIT + 2 * LONGEST_PAUSE;
        assert!(end.contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_failed_is_no_step() {
        let begun = Instant::now();
        let looks = Cell::new(0);
        let is_state = |said: &Error| !said.to_string().starts_with("failed");
        let waited = wait_for_steps("it", LIMIT, is_state, async || -> Result<()> {
            looks.set(looks.get() + 1);
            bail!("failed, look {}", looks.get())
        });
        waited.await.unwrap_err();
        let end = LIMIT..LIMIT + 2 * LONGEST_PAUSE;
        assert!(end.contains(&begun.elapsed()), "{:?}", begun.elapsed());
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
