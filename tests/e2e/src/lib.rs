//! Tools of the whole-system tests: the running cluster, API keys issued on it, requests through its ingress,
//! and load whose every request is counted.

use std::path::{Path, PathBuf};

mod api_key;
mod cluster;
mod cut;
mod environment;
mod ingest;
mod kept;
mod kubectl;
pub mod load;
mod own_address;
mod pods;
mod stores;
mod water;

pub use api_key::ApiKey;
pub use cluster::{Cluster, NAMESPACE, PATIENCE, RELEASE, condition, is_current};
pub use cut::Cut;
pub use environment::Environment;
pub use kept::{KeptSpec, rollout};
pub use kubectl::{Kubectl, refusal, text_of};
pub use own_address::OwnAddress;
pub use pods::{Component, Pod};
pub use water::{Water, ordered_fields};

/// Returns the checkout's root.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
