//! Everything that this crate does, against a real PostgreSQL: each test has its own database.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod abandoned;
mod deletions;
mod departement_loads;
mod departements;
mod faults;
mod fixture;
mod former;
mod guards;
mod history;
mod history_loads;
mod history_order;
mod levels;
mod locks;
mod migrations;
mod pooler;
mod sources;
mod tls;
mod walks;
mod walks_under_load;
