//! Faults of the operator: it is killed at every request of a key's life, and random changes and
//! faults follow one another. After each of them the same ten invariants are checked, by checkers
//! that find what is planted.

mod api_server;
mod change;
mod clocks;
mod cold_start;
mod conflicts;
mod expectations;
mod full_etcd;
mod kills;
mod long;
mod making;
mod measurements;
mod operators;
mod planted;
mod playground;
mod population;
mod refused_writes;
mod renewals;
mod scenario;
mod store;
mod taken_away;
mod unreadable;
