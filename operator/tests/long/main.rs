//! Faults that take minutes: they run with `cargo dev test --faults`.

mod black_hole;
mod foreign;
mod lists;
