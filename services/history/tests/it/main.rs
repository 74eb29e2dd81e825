//! The service over real HTTP, on a real PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod answers;
mod bulk;
mod bulk_refusals;
mod changes;
mod connections;
mod fixture;
mod identity;
mod leaving;
mod outages;
mod pages;
mod pooler;
mod replica;
mod server_faults;
mod settings;
mod sources;
mod transfer;
mod turns;
