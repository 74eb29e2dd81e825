//! The one place where the operator reads the clock.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use water_domain::Timestamp;

/// The time of day, for statuses; expiry itself is judged at the gates on Redis' clock.
#[expect(
    clippy::disallowed_methods,
    reason = "here the process meets the world"
)]
pub fn now() -> Timestamp {
    let millis = chrono::Utc::now().timestamp_millis();
    Timestamp::from_millis(millis).expect("the clock shows a year of four digits")
}

/// The time of day as Leases and events show it to people; nothing is decided by it.
pub fn shown_time() -> MicroTime {
    MicroTime(jiff::Timestamp::now())
}
