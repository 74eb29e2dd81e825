//! Tests of the whole crate against a real PostgreSQL, with a separate database for each.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod abandoned;
mod deletions;
mod departement_loads;
mod departements;
mod faults;
mod fixture;
mod guards;
mod history;
mod history_loads;
mod history_order;
mod levels;
mod lifting;
mod locks;
mod migrations;
mod pooler;
mod sources;
mod tls;
mod walks;
mod walks_under_load;

use std::time::Duration;

/// Longer than anything in these tests takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);
