//! The index: what the directory holds of each owner, in one entry by its uid. Scripts read and write
//! it (`held.lua` has its form); it is read whole to look at what they have done.

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;

use futures::TryStreamExt;
use water_domain::KeyHash;

use super::scripts::number;
use super::{Directory, batches};
use crate::failure::StoreError;
use crate::owner::Owner;

/// What the directory holds of one owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The ApiKey.
    pub owner: Owner,
    /// The number of its last change.
    pub number: u64,
    /// The keys that it has declared and that were accepted.
    pub hashes: BTreeSet<KeyHash>,
}

/// An entry without its number.
pub(super) fn content(owner: &Owner, hashes: &[KeyHash]) -> Vec<u8> {
    let mut content = format!("{}/{}\n", owner.namespace, owner.name).into_bytes();
    for hash in hashes {
        content.extend(hash.as_bytes());
    }
    content
}

impl Held {
    fn decode(uid: &[u8], stored: &[u8]) -> Option<Self> {
        let space = stored.iter().position(|byte| *byte == b' ')?;
        let line = stored.iter().position(|byte| *byte == b'\n')?;
        let (hashes, rest) = stored[line + 1..].as_chunks();
        if !rest.is_empty() {
            return None;
        }
        let path = stored.get(space + 1..line)?;
        let owner = [uid, b" ", path].concat();
        Some(Self {
            owner: Owner::decode(std::str::from_utf8(&owner).ok()?)?,
            number: number(&stored[..space])?,
            hashes: hashes.iter().copied().map(KeyHash::from_bytes).collect(),
        })
    }
}

impl Directory {
    /// What is held of every owner, by its uid, as far as it can be read: the counts give the rest
    /// away. Not one moment's picture, as [`Directory::stored`].
    pub async fn all_held(&self) -> Result<HashMap<Box<str>, Held>, StoreError> {
        let attempt = "read what is held of all ApiKeys";
        let keys = |shard| [self.instance.held(shard)];
        let mut batches = pin!(batches::read(&self.connection, attempt, "HGETALL", keys));
        let mut all = HashMap::new();
        while let Some(replies) = batches.try_next().await? {
            let replies: Vec<Vec<(Vec<u8>, Vec<u8>)>> = replies;
            let entries = replies.iter().flatten();
            let held = entries.filter_map(|(uid, stored)| Held::decode(uid, stored));
            all.extend(held.map(|held| (held.owner.uid.clone(), held)));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner::decode("4f1c water/acme-prod").unwrap()
    }

    #[test]
    fn an_entry_reads_back_as_it_was_stored() {
        for hashes in [&[][..], &[[b'\n'; 32]], &[[0; 32], [b' '; 32]]] {
            let hashes: Vec<KeyHash> = hashes.iter().copied().map(KeyHash::from_bytes).collect();
            let stored = [b"17 ".to_vec(), content(&owner(), &hashes)].concat();
            let held = Held::decode(b"4f1c", &stored).unwrap();
            assert_eq!((held.number, held.owner), (17, owner()));
            assert!(held.hashes.into_iter().eq(hashes));
        }
    }

    #[test]
    fn what_is_no_entry_is_not_read_as_one() {
        for stored in [
            "",
            "17",
            "17 water/acme",
            "x water/acme\n",
            "17 water/acme\nshort",
        ] {
            assert_eq!(Held::decode(b"4f1c", stored.as_bytes()), None, "{stored}");
        }
    }
}
