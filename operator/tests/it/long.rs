//! Tests that take minutes or hundreds of keys: `cargo dev test --long` runs them beside others.

mod foreign;
mod lists;
