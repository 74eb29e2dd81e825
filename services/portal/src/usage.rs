//! `GET /account/v1/accounts/{account}/usage`: what the gates have counted, day by day, to 15 seconds.

use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use water_domain::Timestamp;
use water_http::Problem;
use water_keystore::{Usage as Counts, UtcDay};

use crate::asked::{Asked, Response};
use crate::json::json;
use crate::member::Member;

/// Days that are told where the request does not say.
const DAYS: u32 = 30;

/// An account's requests by day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    as_of: Timestamp,
    /// How many days.
    count: usize,
    /// The oldest first; the last one is today.
    data: Vec<Day>,
}

/// The requests of one day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Day {
    /// In UTC.
    #[schema(format = Date, example = "2026-07-01")]
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
    asked: &Asked<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    if !asked.received.only_reads() {
        return Err(Problem::method_not_allowed());
    }
    let days = asked.query.get("days")?.map_or(Ok(DAYS), days)?;
    let counted = counts.days(member.account(), UtcDay::of(now), days).await?;
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
    days.filter(|_| digits).ok_or_else(|| {
        let rule = format!(
            "Give a whole number from 1 to {}: older days are not kept.",
            UtcDay::KEPT
        );
        Problem::invalid_parameter("days", rule)
    })
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
