//! `GET /account/v1/accounts/{account}/usage`: the gates' counts, day by day, to 15 seconds.

use http::StatusCode;
use serde::Serialize;
use water_domain::Timestamp;
use water_http::Problem;
use water_http::problem::texts;
use water_keystore::{Usage as Counts, UtcDay};

use crate::account_request::{AccountRequest, Response};
use crate::json::json;
use crate::member::Member;

/// Days of an answer where the request names no number.
const DAYS: u32 = 30;

/// An account's requests by day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Time of the reading.
    as_of: Timestamp,
    /// Number of days.
    count: usize,
    /// The oldest first; the last one is today.
    data: Vec<Day>,
}

/// The requests of one day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Day {
    /// Date in UTC.
    day: String,
    /// Requests within the account's limits.
    accepted: u64,
    /// Requests that were answered 429.
    limited: u64,
}

/// Answers for the last `days` days, 30 if not said otherwise.
pub async fn answer(
    counts: &Counts,
    member: &Member,
    asked: &AccountRequest<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    if !asked.received.only_reads() {
        return Err(Problem::method_not_allowed());
    }
    asked.query.only(&["days"])?;
    let days = asked.query.get("days")?.map_or(Ok(DAYS), days)?;
    let counted = counts
        .days(member.account(), UtcDay::from(now), days)
        .await?;
    let data: Vec<Day> = counted
        .into_iter()
        .map(|counted| Day {
            day: counted.day.to_string(),
            accepted: counted.accepted,
            limited: counted.limited,
        })
        .collect();
    let count = data.len();
    let usage = Usage {
        as_of: now,
        count,
        data,
    };
    Ok(json(StatusCode::OK, &usage))
}

fn days(text: &str) -> Result<u32, Problem> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let days = text
        .parse()
        .ok()
        .filter(|days| (1..=UtcDay::KEPT).contains(days));
    days.filter(|_| digits)
        .ok_or_else(|| Problem::invalid_parameter("days", texts::days_kept(UtcDay::KEPT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_days_as_are_kept_can_be_asked_for() {
        for (text, expected) in [("1", 1), ("35", 35), ("07", 7)] {
            assert_eq!(days(text).unwrap(), expected);
        }
        for bad in ["", "0", "36", "-1", "+5", "1.5", "x", "99999999999"] {
            assert!(days(bad).is_err(), "{bad}");
        }
    }
}
