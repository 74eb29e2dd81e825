//! Which of several ApiKeys gets what all of them name: a hash or a key id. The smallest claim wins, and of
//! equal claims the oldest ApiKey.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;

/// How strong an ApiKey's claim is; the strongest comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Claim {
    /// Its status says that the key is in force.
    InForce,
    /// Its status announces it.
    Announced,
    /// Its spec names it.
    Declared,
}

/// How old an ApiKey is, by its creation and then its uid; the oldest comes first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Age(Option<Time>, String);

impl Age {
    pub fn of(key: &impl Resource) -> Self {
        let meta = key.meta();
        Self(
            meta.creation_timestamp.clone(),
            meta.uid.clone().unwrap_or_default(),
        )
    }
}
