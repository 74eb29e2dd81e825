//! Everything Kubernetes: the two custom resources and their controllers.

pub mod backoff;
pub mod caches;
pub mod client;
pub mod clock;
pub mod conditions;
pub mod config;
pub mod context;
pub mod crd;
pub mod directories;
pub mod events;
pub mod gate_pods;
#[cfg(test)]
mod golden;
pub mod installation;
pub mod keys;
pub mod leading;
pub mod lease;
pub mod metrics;
pub mod release;
pub mod run;
#[cfg(test)]
mod sample;
pub mod watches;
