//! Kubernetes' part of the system: the two custom resources and their controllers.

pub mod adopt;
mod backoff;
mod caches;
pub mod client;
mod clock;
mod conditions;
pub mod config;
mod context;
pub mod crd;
mod definitions;
pub mod directories;
mod events;
mod gate_pods;
mod inquiry;
mod installation;
pub mod keys;
mod leading;
pub mod lease;
mod lock;
pub mod metrics;
pub mod release;
pub mod run;
#[cfg(test)]
mod sample;
mod watches;
