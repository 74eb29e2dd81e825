//! The command as an operator runs it, against a real PostgreSQL: each test has its own database.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod administration;
mod check;
mod damage;
mod demo;
mod fixture;
mod histories;
mod kill;
mod provenance;
mod refusals;
mod strict;
mod vigieau;
