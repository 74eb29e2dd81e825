//! The request that everything here is measured by, its answer, and the plans of its senders.

use std::num::NonZeroU32;

use water_domain::{Limits, Plan};
use water_keystore::{Contents, Entry};

/// What is asked for.
pub const TARGET: &str = "/api/v1/stress?dept=34";

/// The service's answer to it.
pub const BODY: &str = concat!(
    r#"{"count":1,"updatedAt":"2026-07-02T00:00:00.000Z","#,
    r#""data":[{"dept":"34","name":"Hérault","stressIndex":3.4,"level":"alerte"}],"#,
    r#""dept":"34","name":"Hérault","stressIndex":3.4,"level":"alerte"}"#,
);

/// The plan of all keys that shall be served, whose limits (a minute, a day) no account meets.
pub const PLAN: &str = "Unmet";
pub const LIMITS: (u32, u32) = (1_000_000, 1_000_000_000);

/// The plan of keys that shall be refused.
pub const USED_UP: &str = "UsedUp";
const ONE_A_DAY: (u32, u32) = (1_000_000, 1);

/// A directory with these keys and the plans.
pub fn contents(entries: impl Iterator<Item = Entry>) -> Contents {
    Contents {
        entries: entries.collect(),
        plans: vec![plan(PLAN, LIMITS), plan(USED_UP, ONE_A_DAY)],
    }
}

/// A plan with these limits, a minute and a day.
pub fn plan(name: &str, (minute, day): (u32, u32)) -> Plan {
    let number = |number| NonZeroU32::new(number).expect("a limit is not 0");
    Plan {
        name: name.parse().expect("letters are a plan's name"),
        limits: Some(Limits {
            requests_per_minute: number(minute),
            requests_per_day: number(day),
        }),
    }
}
