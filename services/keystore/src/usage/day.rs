//! A calendar day in UTC.

use std::fmt;

use water_domain::Timestamp;

const MILLIS: i64 = 86_400_000;

/// A calendar day in UTC, printed as `YYYY-MM-DD`. Days count from 1970-01-01.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UtcDay(i64);

impl From<Timestamp> for UtcDay {
    /// The day of a moment.
    fn from(moment: Timestamp) -> Self {
        Self(moment.as_millis().div_euclid(MILLIS))
    }
}

impl UtcDay {
    /// Number of days for which an account's usage is kept, today among them.
    pub const KEPT: u32 = 35;

    /// Days up to this one, so many together, the oldest first.
    pub(super) fn back_to(self, count: u32) -> impl Iterator<Item = Self> {
        (0..i64::from(count))
            .rev()
            .map(move |back| Self(self.0 - back))
    }
}

impl fmt::Display for UtcDay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = Timestamp::from_millis(self.0 * MILLIS).ok_or(fmt::Error)?;
        let begin = begin.to_string();
        formatter.write_str(begin.split('T').next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(moment: &str) -> UtcDay {
        UtcDay::from(Timestamp::parse(moment).unwrap())
    }

    #[test]
    fn a_day_begins_at_midnight_in_utc() {
        assert_eq!(day("2026-02-28T23:59:59.999Z").to_string(), "2026-02-28");
        assert_eq!(day("2026-03-01T00:00:00Z").to_string(), "2026-03-01");
        assert_eq!(day("2026-03-01T01:00:00+02:00").to_string(), "2026-02-28");
        assert_eq!(day("1969-12-31T23:59:59.999Z").to_string(), "1969-12-31");
    }

    #[test]
    fn the_days_before_a_day_end_with_it() {
        let days: Vec<_> = day("2026-03-01T12:00:00Z").back_to(3).collect();
        let printed: Vec<_> = days.iter().map(UtcDay::to_string).collect();
        assert_eq!(printed, ["2026-02-27", "2026-02-28", "2026-03-01"]);
    }
}
