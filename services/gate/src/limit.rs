//! Both limits, charged in one step, and the headers that report their state to the client.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;
use water_domain::{Limits, Timestamp};
use water_http::Problem;
use water_keystore::{Decision, Limiter, Record, Window};

const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// An attempt to charge a request.
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    /// Duration of the attempt.
    pub took: Duration,
    /// The limiter's decision; `None` if it failed.
    pub decision: Option<Decision>,
}

/// Charges one request to the key's account, and refuses it if a window is full. `now` is Redis' time. It is never the
/// client's fault that neither Redis nor this gate could decide.
pub async fn limit(
    record: &Record,
    limits: Limits,
    now: Timestamp,
    limiter: &Limiter,
    charge: &mut Option<Charge>,
) -> Result<(), Problem> {
    let began = Instant::now();
    let outcome = limiter.charge(&record.account, limits, now).await;
    *charge = Some(Charge {
        took: began.elapsed(),
        decision: outcome.ok(),
    });
    match outcome {
        Ok(decision) => accepted(&decision),
        Err(error) => Err(Problem::dependency_unavailable().caused_by(error)),
    }
}

fn accepted(decision: &Decision) -> Result<(), Problem> {
    let Some(seconds) = decision.retry_after_seconds() else {
        return Ok(());
    };
    let full = |window: &Window| window.remaining == 0;
    let violated: &[&str] = match (full(&decision.minute), full(&decision.day)) {
        (true, true) => &["minute", "day"],
        (false, true) => &["day"],
        _ => &["minute"],
    };
    Err(Problem::rate_limited(violated, seconds))
}

/// Adds `RateLimit-Policy` and `RateLimit` (the IETF's draft), and `X-RateLimit-*` of the window with fewer remaining:
/// on every accepted answer and every 429.
pub fn label(decision: &Decision, headers: &mut HeaderMap) {
    let Decision { minute, day, .. } = decision;
    let tightest = decision.tightest();
    let policy = [
        ("\"minute\";q=", minute.limit.into()),
        (";w=60, \"day\";q=", day.limit.into()),
    ];
    headers.insert(RATE_LIMIT_POLICY, value(&policy, ";w=86400"));
    let standing = [
        ("\"minute\";r=", minute.remaining.into()),
        (";t=", minute.opens_in_seconds()),
        (", \"day\";r=", day.remaining.into()),
        (";t=", day.opens_in_seconds()),
    ];
    headers.insert(RATE_LIMIT, value(&standing, ""));
    headers.insert(LIMIT, tightest.limit.into());
    headers.insert(REMAINING, tightest.remaining.into());
    headers.insert(RESET, decision.reset_epoch_seconds(tightest).into());
}

/// Joins texts, each followed by its number, and an end. `format!` costs three times as much, and these are on every
/// answer.
fn value(parts: &[(&str, u64)], end: &str) -> HeaderValue {
    let mut written = String::with_capacity(64);
    for (text, number) in parts {
        written.push_str(text);
        written.push_str(itoa::Buffer::new().format(*number));
    }
    written.push_str(end);
    HeaderValue::try_from(written).expect("digits and punctuation are visible ASCII")
}

#[cfg(test)]
mod tests {
    use http::Response;
    use serde_json::{Value, json};
    use water_http::{Language, RequestIds};

    use super::*;

    fn decision(accepted: bool, minute: u32, day: u32) -> Decision {
        let window = |limit, remaining, millis| Window {
            limit,
            remaining,
            opens_in: Duration::from_millis(millis),
        };
        Decision {
            accepted,
            at: Timestamp::from_millis(1_800_000_000_500).unwrap(),
            minute: window(120, minute, 12_001),
            day: window(50_000, day, 3_600_000),
            slot_opens_in: Duration::from_millis(12_001),
        }
    }

    fn headers(decision: Decision) -> HeaderMap {
        let mut headers = HeaderMap::new();
        label(&decision, &mut headers);
        headers
    }

    #[test]
    fn an_answer_tells_both_windows_and_the_tighter_one_again() {
        let headers = headers(decision(true, 119, 49_000));
        let expected = [
            (
                "ratelimit-policy",
                r#""minute";q=120;w=60, "day";q=50000;w=86400"#,
            ),
            ("ratelimit", r#""minute";r=119;t=13, "day";r=49000;t=3600"#),
            ("x-ratelimit-limit", "120"),
            ("x-ratelimit-remaining", "119"),
            ("x-ratelimit-reset", "1800000013"),
        ];
        for (name, value) in expected {
            assert_eq!(headers[name], value, "{name}");
        }
    }

    #[test]
    fn the_day_is_told_when_it_has_fewer_remaining() {
        let headers = headers(decision(true, 119, 7));
        assert_eq!(headers["x-ratelimit-limit"], "50000");
        assert_eq!(headers["x-ratelimit-reset"], "1800003601");
    }

    #[test]
    fn a_refusal_is_429_and_an_acceptance_is_not() {
        assert!(accepted(&decision(true, 0, 0)).is_ok());
        let refusal = accepted(&decision(false, 0, 5)).unwrap_err();
        assert_eq!(refusal.code().as_str(), "rate_limited");
    }

    #[test]
    fn a_refusal_waits_for_its_own_slot_and_the_limits_headers_tell_the_first() {
        let refusal = Decision {
            slot_opens_in: Duration::from_millis(20_001),
            ..decision(false, 0, 5)
        };
        let problem = accepted(&refusal).unwrap_err();
        let id = RequestIds::new(1).mint();
        let answer: Response<Vec<u8>> = problem.into_response(&id, Language::English);
        assert_eq!(answer.headers()["retry-after"], "21");
        let headers = headers(refusal);
        assert_eq!(
            headers["ratelimit"],
            r#""minute";r=0;t=13, "day";r=5;t=3600"#
        );
        assert_eq!(headers["x-ratelimit-reset"], "1800000013");
    }

    #[test]
    fn a_refusal_names_every_full_window() {
        for (minute, day, full) in [
            (0, 5, json!(["minute"])),
            (5, 0, json!(["day"])),
            (0, 0, json!(["minute", "day"])),
        ] {
            let refusal = accepted(&decision(false, minute, day)).unwrap_err();
            let body = refusal.body(&RequestIds::new(1).mint(), Language::English);
            let told: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(told["violated-policies"], full);
        }
    }
}
