//! What the component tests of the services behind the gate share: a migrated database, a service
//! in the test's process that is called as the gate calls it, and what every such binary must do.
//!
//! Failures panic with what was seen: all of this runs in tests only.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod binary;
mod data;
mod identity;
mod service;

use std::time::Duration;

pub use binary::Binary;
pub use data::{load, migrated, writer};
pub use identity::{CURRENT, NEXT, Signature};
pub use service::{Running, problem};

/// Longer than anything in these tests takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);
