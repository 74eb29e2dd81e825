//! One change of the directory, as the operator asks for it.

use water_domain::KeyHash;

use crate::owner::Owner;
use crate::record::Record;

/// A change of one key. Several can be written in one script: all of them or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Publishes a record or replaces it. Refused when the hash is revoked or another's.
    Put {
        /// The key's hash.
        hash: KeyHash,
        /// What the gates shall know of it.
        record: Record,
        /// The ApiKey that declares it.
        owner: Owner,
        /// Forgets a revocation first, because the owner asked for exactly this hash again.
        reinstate: bool,
    },
    /// Takes a record away, unless it is another owner's.
    Remove {
        /// The key's hash.
        hash: KeyHash,
        /// The ApiKey that declared it.
        owner: Owner,
        /// Whether the hash may come back.
        removal: Removal,
    },
}

impl Change {
    /// The ApiKey on whose behalf it is made.
    pub fn owner(&self) -> &Owner {
        match self {
            Self::Put { owner, .. } | Self::Remove { owner, .. } => owner,
        }
    }
}

/// Whether a removed hash may come back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Removal {
    /// Deleted, swept or retired: leaves a tombstone that refuses every later put.
    Revoke,
    /// Lost admission, or replaced before anybody saw it: no tombstone.
    Withdraw,
}
