//! The key protocol, explored exhaustively within stated bounds: the decisions are the operator's own.
//!
//! Two leaders that may be paused and go on, two gates that start, stop and are cut off, a Redis that
//! is wiped or goes back to what it held before, another one to which the directory moves and from which it
//! comes back, and ApiKeys with their statuses and Secrets. A leader's
//! pass calls `water_operator_core::key::decide`; the store follows the scripts of `services/keystore`.
//! `README.md` says what is explored, how far, and what is left out.

mod acknowledgement;
mod action;
mod bounds;
mod bytes;
mod canonical;
mod checking;
mod cluster;
mod contents;
mod explorations;
mod forgetting;
mod gate;
mod leader;
mod leading;
mod loading;
mod mistake;
mod mistakes;
mod naming;
mod next;
mod on_redis;
mod owner;
mod pass;
mod planted;
mod protocol;
mod records;
mod seen;
mod store;
mod system;
mod write;
