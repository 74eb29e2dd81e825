//! The portal: account holders sign in here, make and revoke keys, and read their data.
//!
//! [`app`] is the place to begin reading: it takes a request from its origin to its session, to its member
//! and to its route. Alone knows: OpenID Connect, browser sessions, pages. Never knows: SQL, names of Redis
//! keys, Secrets.

mod account_request;
mod app;
mod budgets;
mod claims;
mod clock;
mod cluster;
mod config;
mod cookie;
mod data;
mod headers;
mod journal;
mod json;
mod key_text;
mod keys;
mod member;
mod metrics;
mod notice;
mod origin;
mod pages;
mod plans;
mod proof;
mod provider;
mod quota;
mod random;
mod reader;
mod route;
#[cfg(test)]
mod sample;
mod seal;
mod service;
mod session;
mod sessions;
mod sign_in;
mod sign_out;
mod standing;
mod usage;

pub use config::Config;
pub use pages::{NoPages, Pages};
pub use service::Service;
