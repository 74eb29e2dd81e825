//! Content of the whole directory: written by a rebuild, and read back to compare.

use std::collections::HashMap;
use std::pin::pin;

use futures::TryStreamExt;
use redis::cmd;
use water_domain::{KeyHash, Plan};

use super::declaration::Origin;
use super::meta::Counts;
use super::{Directory, batches};
use crate::failure::StoreError;
use crate::owner::Owner;
use crate::record::Record;

/// Content that a directory shall have.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Every key to be published, in any order.
    pub entries: Vec<Entry>,
    /// Every plan that a gate may meet.
    pub plans: Vec<Plan>,
}

/// A key to be published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The key's hash.
    pub hash: KeyHash,
    /// Record of the key for the gates.
    pub record: Record,
    /// The ApiKey that declares it.
    pub owner: Owner,
    /// Origin of the key: decides which tombstones bar it.
    pub origin: Origin,
}

/// Content of the directory for one hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredEntry {
    /// Record; `None`: it cannot be decoded.
    pub record: Option<Record>,
    /// Owner; `None`: missing or unreadable.
    pub owner: Option<Owner>,
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

impl Directory {
    /// Records with their owners, all that there are, to be compared with what is declared. Not one moment's picture:
    /// what changes meanwhile may be seen before or after.
    pub async fn stored(&self) -> Result<HashMap<KeyHash, StoredEntry>, StoreError> {
        let attempt = "read all key records";
        let keys = |shard| [self.instance.records(shard), self.instance.owners(shard)];
        let mut batches = pin!(batches::read(&self.connection, attempt, "HGETALL", keys));
        let mut stored = HashMap::new();
        while let Some(replies) = batches.try_next().await? {
            let replies: Vec<Fields> = replies;
            let mut replies = replies.into_iter();
            while let Some((records, owners)) = replies.next().zip(replies.next()) {
                let mut owners: HashMap<Vec<u8>, Vec<u8>> = owners.into_iter().collect();
                for (field, packed) in records {
                    let owner = owners
                        .remove(&field)
                        .and_then(|text| String::from_utf8(text).ok());
                    // A field that is no hash was not written by an operator; the count shows that it is there.
                    let Ok(hash) = field.try_into().map(KeyHash::from_bytes) else {
                        continue;
                    };
                    let found = StoredEntry {
                        record: Record::decode(&packed),
                        owner: owner.as_deref().and_then(Owner::decode),
                    };
                    stored.insert(hash, found);
                }
            }
        }
        Ok(stored)
    }

    /// Numbers of fields in the directory: others than its `meta` counts mean that Redis evicted some.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        let attempt = "count all key records";
        let keys = |shard| {
            [
                self.instance.records(shard),
                self.instance.owners(shard),
                self.instance.held(shard),
            ]
        };
        let mut batches = pin!(batches::read(&self.connection, attempt, "HLEN", keys));
        let mut counts = Counts::default();
        while let Some(lengths) = batches.try_next().await? {
            let lengths: Vec<u64> = lengths;
            for shard in lengths.chunks_exact(3) {
                counts.records += shard[0];
                counts.owners += shard[1];
                counts.held += shard[2];
            }
        }
        let command = cmd("HLEN").arg(self.instance.revoked()).to_owned();
        counts.revoked = self.connection.run(attempt, &command).await?;
        Ok(counts)
    }
}
