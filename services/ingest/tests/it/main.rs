//! The command as an operator runs it, against a real PostgreSQL: each test has its own database.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod administration;
mod check;
mod command;
mod damage;
mod deletion;
mod demo;
mod dry_run;
mod first_load;
mod https;
mod interrupted;
mod kill;
mod loads;
mod provenance;
mod readme;
mod remote;
mod schema;
mod state;
mod together;
mod verify;
mod vigieau;
