//! The keystore against a real Redis: each test has an instance of its own on a shared server, or
//! a server of its own where it breaks it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod acl;
mod cluster;
mod declarations;
mod decoder;
mod directory;
mod earlier_state;
mod failures;
mod former;
mod full;
mod leases;
mod limiter;
mod limiter_script;
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
