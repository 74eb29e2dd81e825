//! The gate: authenticates a request, admits it by plan, routes it, charges the limits, and forwards it to the service
//! that answers it.
//!
//! Start reading at [`app`]: it has these five steps in five lines.

mod admit;
mod app;
mod authenticate;
pub mod body_budget;
mod capacity;
mod checks;
mod config;
mod cors;
mod credentials;
mod directory;
mod entrance;
pub mod forward;
mod grace;
mod guessing;
mod journal;
mod last_use;
mod limit;
mod metrics;
mod openapi;
mod preparation;
pub mod redis;
mod route;
mod service;
pub mod upstream;

pub use config::Config;
pub use service::Service;
