//! Faults of the operator: it is killed at every request of a key's life, and random changes and
//! faults follow one another. After each of them the same ten invariants are looked at, by checkers
//! that find what is planted.

mod api_server;
mod change;
mod clients;
mod clocks;
mod cold_start;
mod conflicts;
mod expectations;
mod facts;
#[allow(dead_code, reason = "tests of single behaviours use the rest of it")]
#[path = "../it/gate.rs"]
mod gate;
#[allow(dead_code, reason = "tests of single behaviours use the rest of it")]
#[path = "../it/gate_process.rs"]
mod gate_process;
mod invariants;
mod kills;
mod making;
mod namespace;
mod objects;
mod operators;
mod planted;
mod playground;
mod population;
mod renewals;
mod restored;
#[allow(dead_code, reason = "tests of single behaviours use the rest of it")]
#[path = "../it/rights.rs"]
mod rights;
mod scenario;
mod sequences;
#[allow(dead_code, reason = "the faults that take long use the rest of it")]
mod stage;
mod store;
mod successors;
mod taken_away;
mod unreadable;
#[allow(dead_code, reason = "tests of single behaviours use the rest of it")]
#[path = "../it/world.rs"]
mod world;
