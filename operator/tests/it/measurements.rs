//! Tests that judge times or memory: `cargo dev test --long` runs them one by one, with nothing beside them.

mod black_hole;
mod silent_store;
