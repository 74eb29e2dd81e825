//! Owner of a record: kept next to the records for the operator alone.

use std::fmt;

use sha2::{Digest, Sha256};
use water_domain::KeyHash;
use water_domain::key::Shard;

/// The ApiKey that declared a key. Stored as `<uid> <namespace>/<name>`; the uid comes first so
/// that scripts can compare it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Owner {
    /// The ApiKey's uid: another object of the same name is another owner.
    pub uid: Box<str>,
    /// The ApiKey's namespace.
    pub namespace: Box<str>,
    /// The ApiKey's name.
    pub name: Box<str>,
}

impl Owner {
    /// Reads the stored form; `None` when it is something else.
    pub fn decode(text: &str) -> Option<Self> {
        let (uid, path) = text.split_once(' ')?;
        let (namespace, name) = path.split_once('/')?;
        Some(Self {
            uid: uid.into(),
            namespace: namespace.into(),
            name: name.into(),
        })
    }
}

/// The shard of the index that has the entry of the owner with this uid: by its SHA-256, as a
/// key's is.
pub(crate) fn shard(uid: &str) -> Shard {
    KeyHash::from_bytes(Sha256::digest(uid).into()).shard()
}

impl fmt::Display for Owner {
    /// The stored form.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}/{}", self.uid, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_of_a_uid_is_this() {
        // printf 4f1c | sha256sum
        assert_eq!(shard("4f1c").to_string(), "cfb");
    }

    #[test]
    fn an_owner_reads_back_as_it_was_stored() {
        let text = "4f1c water/acme-prod";
        assert_eq!(Owner::decode(text).unwrap().to_string(), text);
        assert_eq!(Owner::decode("acme-prod"), None);
    }
}
