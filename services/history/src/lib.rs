//! `GET /api/v1/hydrorisk` and `/conformite`: an account's histories, page by page; and `/sources`: the origin of all
//! data.
//!
//! Each `page` is one query, reachable only through the account in the gate's signed identity. It is answered in an
//! `envelope`, with `links` to others. `bulk` pages have the same records as CSV or NDJSON, thousands at once, and
//! the changes since a token.

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
