//! Repetition of a request while its server is away, within a bounded time.

use std::time::Duration;

use crate::remote::failure::FetchError;

/// Pause after the first failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause, unless the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Repeats an attempt until it succeeds or fails permanently, or until the next one would begin after `limit`. An attempt
/// gets the time that is left; `elapsed` is the time since the first one began.
pub(super) fn repeat<T>(
    limit: Duration,
    elapsed: impl Fn() -> Duration,
    mut pause: impl FnMut(&FetchError, Duration),
    mut attempt: impl FnMut(Duration) -> Result<T, FetchError>,
) -> Result<T, FetchError> {
    let mut next_pause = FIRST_PAUSE;
    loop {
        let error = match attempt(limit.saturating_sub(elapsed())) {
            Err(error) if error.is_transient() => error,
            ended => return ended,
        };
        let length = next_pause.max(error.retry_after().unwrap_or_default());
        if elapsed() + length >= limit {
            return Err(error);
        }
        pause(&error, length);
        next_pause = (next_pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(600);

    /// Repeats an attempt that gets the number of seconds since the first one; returns its result and the pauses.
    fn repeated(
        attempt: impl Fn(u64) -> Result<(), FetchError>,
    ) -> (Result<(), FetchError>, Vec<u64>) {
        let (clock, pauses) = (Cell::new(Duration::ZERO), RefCell::new(Vec::new()));
        let pause = |_: &FetchError, length: Duration| {
            clock.set(clock.get() + length);
            pauses.borrow_mut().push(length.as_secs());
        };
        let attempt = |left| {
            assert_eq!(left, LIMIT - clock.get());
            attempt(clock.get().as_secs())
        };
        let result = repeat(LIMIT, || clock.get(), pause, attempt);
        (result, pauses.into_inner())
    }

    fn status(code: u16, retry_after: Option<u64>) -> Result<(), FetchError> {
        let retry_after = retry_after.map(Duration::from_secs);
        Err(FetchError::Status(code, retry_after))
    }

    #[test]
    fn a_source_that_is_away_for_a_minute_and_a_half_is_fetched() {
        let (result, pauses) = repeated(|now| {
            if now < 90 {
                Err(FetchError::Silent)
            } else {
                Ok(())
            }
        });
        assert!(result.is_ok());
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60]);
    }

    #[test]
    fn a_source_that_stays_away_is_given_up_within_the_limit() {
        let (result, pauses) = repeated(|_| status(503, None));
        assert!(matches!(result, Err(FetchError::Status(503, None))));
        let waited: u64 = pauses.iter().sum();
        assert!((540..600).contains(&waited), "{waited}");
    }

    #[test]
    fn a_server_is_not_asked_before_the_time_that_it_gives_nor_after_the_limit() {
        let (result, pauses) = repeated(|now| {
            if now < 1 {
                status(429, Some(100))
            } else {
                Ok(())
            }
        });
        assert!(result.is_ok());
        assert_eq!(pauses, [100]);
        let (result, pauses) = repeated(|_| status(429, Some(600)));
        assert!(result.is_err() && pauses.is_empty());
    }

    #[test]
    fn a_failure_that_stays_is_not_repeated() {
        for code in [401, 403, 404, 410] {
            assert!(repeated(|_| status(code, Some(1))).1.is_empty(), "{code}");
        }
        for permanent in [
            || FetchError::TooLarge,
            || FetchError::UnknownHost,
            || FetchError::Redirect,
            || FetchError::Deadline,
        ] {
            assert!(repeated(|_| Err(permanent())).1.is_empty());
        }
    }
}
