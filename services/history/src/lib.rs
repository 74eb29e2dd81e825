//! `GET /api/v1/hydrorisk` and `/conformite`: an account's own histories, page by page.
//!
//! Each page is one query, reachable only through the account in the gate's signed identity, and is
//! written as bytes: `envelope` around rows that `json` writes, with the `links` to others.

pub mod config;
mod conformite;
mod envelope;
mod hydrorisk;
mod json;
mod links;
mod routes;
mod service;

pub use config::Config;
pub use service::Service;
