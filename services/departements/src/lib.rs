//! `GET /api/v1/stress` and `/risque`: the départements' datasets, answered from memory.
//!
//! `refresh` keeps `datasets` as new as PostgreSQL's; `routes` answers from them. The gate has checked keys, plans
//! and limits; only its signature is checked here.

mod answers;
mod config;
mod csv;
mod datasets;
mod refresh;
mod risque;
mod routes;
mod service;
mod stress;

pub use config::Config;
pub use service::start;
