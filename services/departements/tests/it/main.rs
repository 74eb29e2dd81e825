//! The service over real HTTP, on a real PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod answers;
mod fixture;
mod following;
mod forms;
mod freshness;
mod identity;
mod readers;
mod reloads;
mod settings;
mod transfer;
