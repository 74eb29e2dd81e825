//! `--as-of`: the moment that a file describes, which only its loader knows.

use std::str::FromStr;

use jiff::tz::{self, TimeZone};
use water_domain::Timestamp;

/// The register's day is a day in France. The zone is compiled in: an image without files has none.
static PARIS: TimeZone = tz::get!("Europe/Paris");

/// Value of `--as-of`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsOf {
    /// The day in Europe/Paris on which the command begins.
    Today,
    /// A time, or a day's first moment in UTC.
    Moment(Timestamp),
}

/// Text that is no date.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("write a day such as 2026-07-01, a time such as 2026-07-01T06:00:00Z, or today")]
pub struct InvalidAsOf;

impl AsOf {
    /// The moment, for a command that begins at `now`.
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Moment(moment) => moment,
            Self::Today => day(&today(now)).expect("a date is a day"),
        }
    }
}

impl FromStr for AsOf {
    type Err = InvalidAsOf;

    fn from_str(text: &str) -> Result<Self, InvalidAsOf> {
        if text == "today" {
            return Ok(Self::Today);
        }
        let moment = Timestamp::parse(text).ok().or_else(|| day(text));
        moment.map(Self::Moment).ok_or(InvalidAsOf)
    }
}

/// The first moment of a day in UTC.
fn day(text: &str) -> Option<Timestamp> {
    Timestamp::parse(&format!("{text}T00:00:00Z")).ok()
}

fn today(now: Timestamp) -> String {
    let now = jiff::Timestamp::from_millisecond(now.as_millis())
        .expect("both kinds of time reach to the year 9999");
    now.to_zoned(PARIS.clone()).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, now: &str) -> String {
        let now = Timestamp::parse(now).unwrap();
        text.parse::<AsOf>().unwrap().at(now).to_string()
    }

    #[test]
    fn it_is_a_day_or_a_time() {
        let now = "2026-07-02T10:00:00Z";
        for (text, printed) in [
            ("2026-07-01", "2026-07-01T00:00:00.000Z"),
            ("2026-07-01T02:00:00+02:00", "2026-07-01T00:00:00.000Z"),
        ] {
            assert_eq!(at(text, now), printed);
        }
        for bad in [
            "",
            "2026-7-1",
            "01/07/2026",
            "2026-07-01T00:00:00",
            "2026-02-30",
            "Today",
        ] {
            assert_eq!(bad.parse::<AsOf>(), Err(InvalidAsOf), "{bad}");
        }
    }

    #[test]
    fn today_is_the_day_in_france() {
        for (now, today) in [
            ("2026-07-01T21:59:59Z", "2026-07-01"),
            ("2026-07-01T22:00:00Z", "2026-07-02"),
            ("2026-12-31T22:59:59Z", "2026-12-31"),
            ("2026-12-31T23:00:00Z", "2027-01-01"),
        ] {
            assert_eq!(at("today", now), format!("{today}T00:00:00.000Z"));
        }
    }
}
