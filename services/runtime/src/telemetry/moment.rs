//! The time of a line of the log: RFC 3339 in UTC, to the microsecond.
//!
//! A busy thread writes thousands of lines a second that differ in their microseconds alone: the rest
//! is written once a second.

use std::cell::Cell;
use std::time::Duration;

use chrono::DateTime;

/// `2026-07-02T00:00:00`.
const LENGTH: usize = 19;

thread_local! {
    /// Seconds since the epoch, and their text.
    static LAST: Cell<(u64, [u8; LENGTH])> = const { Cell::new((u64::MAX, [0; LENGTH])) };
}

/// Appends the moment that is so long after the epoch.
pub(super) fn write(since_epoch: Duration, line: &mut Vec<u8>) {
    let second = since_epoch.as_secs();
    let (last, mut text) = LAST.get();
    if last != second {
        text = written_out(second);
        LAST.set((second, text));
    }
    line.extend_from_slice(&text);
    let mut fraction = *b".000000Z";
    let mut micros = since_epoch.subsec_micros();
    for digit in fraction[1..7].iter_mut().rev() {
        *digit += (micros % 10) as u8;
        micros /= 10;
    }
    line.extend_from_slice(&fraction);
}

/// Writes the second out. A clock that no text can show, before the year 0 or after 9999, is shown as the
/// epoch.
fn written_out(second: u64) -> [u8; LENGTH] {
    let moment = i64::try_from(second)
        .ok()
        .and_then(|second| DateTime::from_timestamp(second, 0));
    let text = moment
        .unwrap_or_default()
        .format("%Y-%m-%dT%H:%M:%S")
        .to_string();
    text.as_bytes()
        .try_into()
        .unwrap_or(*b"1970-01-01T00:00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(since_epoch: Duration) -> String {
        let mut line = Vec::new();
        write(since_epoch, &mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn moments_of_one_second_and_of_the_next_are_told_apart() {
        for (micros, text) in [
            (1_783_036_799_999_999, "2026-07-02T23:59:59.999999Z"),
            (1_783_036_800_000_000, "2026-07-03T00:00:00.000000Z"),
            (1_783_036_800_000_001, "2026-07-03T00:00:00.000001Z"),
            (1_783_036_799_000_120, "2026-07-02T23:59:59.000120Z"),
        ] {
            assert_eq!(written(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn a_clock_that_is_far_off_does_no_harm() {
        assert_eq!(written(Duration::MAX).len(), LENGTH + 8);
    }
}
