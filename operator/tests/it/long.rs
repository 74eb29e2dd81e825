//! Tests that take minutes, hundreds of keys, or measure time: `cargo dev test --long` runs them one by one.

mod black_hole;
mod foreign;
mod lists;
mod silent_store;
