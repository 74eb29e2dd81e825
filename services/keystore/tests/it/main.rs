//! The keystore against a real Redis: each test has its own instance on a shared server, or its own server where it
//! breaks it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod acl;
mod cluster;
mod declarations;
mod decoder;
mod directory;
mod earlier_state;
mod failures;
mod full;
mod leases;
mod limiter;
mod model;
mod rebuild;
mod replica;
mod sessions;
mod sign_ins;
mod site;
mod standby;
mod tls;
mod tombstones;
mod usage;
