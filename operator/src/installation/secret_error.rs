//! Reasons for which a Secret that an installation needs cannot be used, with the remedy.

use water_keystore::InvalidConnectionSettings;

/// Problem of a Secret, with the remedy. No value is ever shown.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("asking the API server: {0}")]
    Kube(#[from] kube::Error),
    #[error(
        "{field} names the Secret {name}, which does not exist: create it with the keys {keys}"
    )]
    Missing {
        field: &'static str,
        name: String,
        keys: String,
    },
    #[error("the Secret {name}, which {field} names, lacks the key {key}: add it")]
    Incomplete {
        field: &'static str,
        name: String,
        key: &'static str,
    },
    #[error(
        "the key operator-url of the Secret {name}, which spec.redis.secretRef.name names: {source}"
    )]
    Redis {
        name: String,
        source: InvalidConnectionSettings,
    },
    /// Secret of somebody else under the identity's name, or an edited one.
    #[error(
        "the Secret {name} does not hold the two identity keys and the salt: delete it, and it is made again"
    )]
    Identity { name: String },
    #[error("asking the system for random bytes: {0}")]
    Random(getrandom::Error),
}

impl SecretError {
    /// Whether somebody has to do something.
    pub fn is_invalid(&self) -> bool {
        !matches!(self, Self::Kube(_) | Self::Random(_))
    }
}
