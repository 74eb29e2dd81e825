//! The command as an operator runs it, against a real PostgreSQL: each test has its own database.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod administration;
mod check;
mod damage;
mod deletion;
mod demo;
mod dry_run;
mod first_load;
mod fixture;
mod histories;
mod https;
mod independent;
mod interrupted;
mod kill;
mod provenance;
mod readme;
mod refusals;
mod remote;
mod schema;
mod state;
mod strict;
mod together;
mod verify;
mod vigieau;
