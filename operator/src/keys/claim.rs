//! Claims of several ApiKeys to what all of them name: a hash or a key id. The smallest claim wins, and of equal claims
//! the oldest ApiKey.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;

/// Strength of an ApiKey's claim; the strongest comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Claim {
    /// The status says that the key is in force.
    InForce,
    /// The status announces it.
    Announced,
    /// The spec names it.
    Declared,
}

/// Age of an ApiKey, by its creation and then its uid; the oldest comes first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Age(Option<Time>, String);

impl Age {
    pub fn read(key: &impl Resource) -> Self {
        let meta = key.meta();
        Self(
            meta.creation_timestamp.clone(),
            meta.uid.clone().unwrap_or_default(),
        )
    }
}
