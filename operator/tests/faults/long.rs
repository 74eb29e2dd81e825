//! Faults that take minutes: they run with `cargo dev test --faults`.

mod black_hole;
#[allow(dead_code, reason = "the other fault tests use the rest of it")]
mod clients;
mod facts;
#[allow(dead_code, reason = "tests of single behaviours use the rest of it")]
#[path = "../it/gate.rs"]
mod gate;
#[allow(dead_code, reason = "the other fault tests use the rest of it")]
mod invariants;
mod lists;
#[allow(dead_code, reason = "the other fault tests use the rest of it")]
mod objects;
#[allow(dead_code, reason = "tests of single behaviours use the rest of it")]
#[path = "../it/rights.rs"]
mod rights;
#[allow(dead_code, reason = "the other fault tests use the rest of it")]
mod scenario;
#[allow(dead_code, reason = "the other fault tests use the rest of it")]
mod stage;
#[allow(dead_code, reason = "tests of single behaviours use the rest of it")]
#[path = "../it/world.rs"]
mod world;
