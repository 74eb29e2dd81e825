//! Tests that take minutes or measure time: `cargo dev test --long` runs them.

mod disruption;
mod latency;
mod rollout;
mod starvation;
mod traffic;
