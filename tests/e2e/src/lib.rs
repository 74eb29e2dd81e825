//! What the whole-system tests stand on: the running cluster, API keys issued on
//! it, requests through its ingress, and load whose every request is accounted for.

use std::path::{Path, PathBuf};

mod api_key;
mod cluster;
mod cut;
mod environment;
pub mod golden;
mod ingest;
mod kubectl;
pub mod load;
mod own_address;
mod pods;
mod stores;
mod water;

pub use api_key::ApiKey;
pub use cluster::{Cluster, NAMESPACE, PATIENCE, RELEASE, condition};
pub use cut::Cut;
pub use environment::Environment;
pub use kubectl::{Kubectl, refusal, text_of};
pub use own_address::OwnAddress;
pub use pods::{Component, Pod};
pub use water::{Water, ordered_fields};

/// The checkout's root.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
