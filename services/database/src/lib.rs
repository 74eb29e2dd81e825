//! PostgreSQL access: connections, the schema, and all of the product's queries.
//!
//! The services read through [`Database`]: [`departements`] as one snapshot, [`history`] one page of one account at a
//! time, or all of it by a [`walk`]; [`sources`] lists the origin of the data. `water-ingest` writes through
//! [`Writer`], one transaction a load, and brings the schema up to date through [`migrations`].

mod changes;
mod database;
pub mod departements;
mod error;
pub mod history;
#[cfg(test)]
mod kept;
pub mod migrations;
mod moment;
mod server;
pub mod sources;
mod version_id;
pub mod walk;
pub mod writer;

pub use changes::Changes;
pub use database::Database;
pub use error::{Error, SettingsError};
pub use server::Authority;
pub use version_id::VersionId;
pub use writer::Writer;
