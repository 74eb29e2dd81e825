//! A moment to the millisecond, printed as `YYYY-MM-DDTHH:MM:SS.mmmZ` (specification §2).

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Datelike, Timelike};
use serde::{Serialize, Serializer};

/// Milliseconds since the Unix epoch. Finer parts are cut off on the way in, so that sorting stored
/// moments and sorting printed ones give the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Timestamp(i64);

/// Text that is no moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a time is RFC 3339 with an offset, such as 2026-07-01T00:00:00Z, in the years 0000 to 9999 of UTC"
)]
pub struct InvalidTimestamp;

/// 0000-01-01 and the last millisecond of 9999: the times that four digits of a year can print.
const PRINTABLE: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

impl Timestamp {
    /// Returns a moment in milliseconds since the epoch, or `None` beyond the years 0 to 9999.
    pub fn from_millis(millis: i64) -> Option<Self> {
        PRINTABLE.contains(&millis).then_some(Self(millis))
    }

    /// Reads RFC 3339 with an offset.
    pub fn parse(text: &str) -> Result<Self, InvalidTimestamp> {
        let moment = DateTime::parse_from_rfc3339(text).map_err(|_| InvalidTimestamp)?;
        Self::from_millis(moment.timestamp_millis()).ok_or(InvalidTimestamp)
    }

    /// Returns the milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the moment that much later; at most the last one that can be printed.
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis).min(*PRINTABLE.end()))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;

    fn try_from(text: String) -> Result<Self, InvalidTimestamp> {
        Self::parse(&text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment =
            DateTime::from_timestamp_millis(self.0).expect("only printable moments are made");
        let (date, time) = (moment.date_naive(), moment.time());
        write!(
            formatter,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            date.year(),
            date.month(),
            date.day(),
            time.hour(),
            time.minute(),
            time.second(),
            moment.timestamp_subsec_millis(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_always_prints_three_decimals_in_utc() {
        for (text, printed) in [
            ("2026-07-01T00:00:00Z", "2026-07-01T00:00:00.000Z"),
            ("2026-07-01T02:00:00+02:00", "2026-07-01T00:00:00.000Z"),
            ("2026-07-01T00:00:00.123999Z", "2026-07-01T00:00:00.123Z"),
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), printed);
        }
    }

    #[test]
    fn a_sum_ends_with_the_last_year_that_can_be_printed() {
        let moment = Timestamp::parse("2026-07-01T00:00:00Z").unwrap();
        let minute = moment.plus(Duration::from_secs(60));
        assert_eq!(minute.to_string(), "2026-07-01T00:01:00.000Z");
        assert_eq!(
            moment.plus(Duration::MAX).to_string(),
            "9999-12-31T23:59:59.999Z"
        );
    }

    #[test]
    fn a_time_without_an_offset_is_refused() {
        for bad in ["2026-07-01", "2026-07-01T00:00:00", "01/07/2026", ""] {
            assert_eq!(Timestamp::parse(bad), Err(InvalidTimestamp), "{bad}");
        }
    }
}
