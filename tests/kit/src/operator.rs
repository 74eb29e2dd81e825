//! Worlds of the operator, at a real API server and a real Redis: the namespace, operators, gates, and
//! for faults a stage with interceptors, clients and invariants.
//!
//! Conditions return errors, so that a wait can show the last one.

pub mod clients;
mod cluster;
pub mod facts;
pub mod foreign;
pub mod gate;
pub mod gate_process;
pub mod invariants;
pub mod objects;
pub mod rights;
mod samples;
pub mod stage;
pub mod world;
