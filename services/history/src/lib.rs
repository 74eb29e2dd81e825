//! `GET /api/v1/hydrorisk` and `/conformite`: an account's own histories, page by page; and
//! `/sources`: where all data comes from.
//!
//! Each `page` is one query, reachable only through the account in the gate's signed identity. It is
//! answered in an `envelope`, with the `links` to others. `bulk` pages are the same records as CSV
//! or NDJSON, thousands at once, and what changed since.

mod bulk;
mod config;
mod conformite;
mod envelope;
mod hydrorisk;
mod links;
mod page;
mod record;
mod routes;
mod service;
mod sources;

pub use config::Config;
pub use service::start;
