//! The machine's clock, read where a request comes in; everything behind takes the time as an argument.

use std::time::SystemTime;

use water_domain::Timestamp;

/// Reads the machine's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "here a request meets the world: expiries and days are judged by this clock"
)]
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since_epoch.map_or(0, |elapsed| elapsed.as_millis() as i64);
    Timestamp::from_millis(millis).expect("the clock is before the year 10000")
}
