//! Worlds for tests: stores, services, gates, portals and operators, each with the settings that it has in a
//! cluster, and the duties of every service behind the gate.
//!
//! Failures panic with what was seen, but for the operator's worlds, whose waits show the last error: all of
//! this runs in tests and benchmarks only.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod binary;
mod database;
mod frame;
pub mod gate;
pub mod golden;
mod identity;
pub mod independent;
mod key_store;
pub mod operator;
mod patient_directory;
pub mod portal;
mod rows;
mod server;
mod service;
pub mod strict;
mod windows;

use std::env;
use std::time::Duration;

pub use binary::Binary;
pub use database::{Database, Loader, load};
pub use gate::{Gate, Key};
pub use identity::{CURRENT, NEXT, Signature};
pub use key_store::KeyStore;
pub use patient_directory::PatientDirectory;
pub use portal::{Browser, Portal};
pub use rows::{Row, batch, day, risk, row, rows, stress};
pub use server::{Server, built};
pub use service::{Running, problem};
pub use windows::{equal, exactly};

/// Longer than anything in these tests takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

/// Whether `WATER_FAULTS` asks for the long forms, too, and for exact times: nothing else runs then.
pub fn is_all_asked_for() -> bool {
    env::var("WATER_FAULTS").is_ok_and(|value| value == "all")
}
