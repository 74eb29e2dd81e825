//! State of one ApiKey in the directory, which the operator reads before it decides.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::{KeyHash, Timestamp};

use super::Directory;
use super::claimed_directory::Position;
use super::declaration::{Declaration, Origin};
use super::scripts::{OWNER_SNAPSHOT, Reply, done, hash, moment, more, number};
use crate::failure::StoreError;
use crate::owner::{self, Owner};
use crate::record::Record;

/// State of one owner in the directory, all at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerSnapshot {
    /// The number of its last change, for the next declaration; 0: nothing was declared yet.
    pub number: u64,
    /// Records of this owner; `None`: a record that is missing or cannot be decoded.
    pub records: BTreeMap<KeyHash, Option<Record>>,
    /// The tombstones that bar asked or held hashes for this origin, with their times.
    pub barred: BTreeMap<KeyHash, Timestamp>,
    /// The asked hashes that another owner holds.
    pub taken: BTreeSet<KeyHash>,
    /// Whether the owner has declared for the last time.
    pub is_gone: bool,
    /// Redis' time.
    pub now: Timestamp,
    /// The term of the last claim: under another one this is not for the caller to judge. 0: there is no directory.
    pub term: u64,
    /// The last change of the directory; `None` unless it is complete and on the server on which it
    /// was completed.
    pub position: Option<Position>,
}

impl OwnerSnapshot {
    /// Whether the directory holds keys of the owner, or has held some.
    pub fn is_known(&self) -> bool {
        self.number > 0 || self.is_gone || !self.records.is_empty()
    }

    /// Declaration of these records by the owner. Everything else that is held is withdrawn, without a tombstone.
    pub fn declaration(
        &self,
        owner: Owner,
        origin: Origin,
        records: BTreeMap<KeyHash, Record>,
    ) -> Declaration {
        let held = self.records.keys().copied();
        Declaration {
            owner,
            number: self.number,
            withdrawn: held.filter(|hash| !records.contains_key(hash)).collect(),
            records,
            revoked: BTreeSet::new(),
            reinstated: BTreeMap::new(),
            origin,
            is_last: false,
        }
    }
}

const ATTEMPT: &str = "look at what is held of an ApiKey";

impl Directory {
    /// Records of the owner with this uid, and obstacles for `hashes` when an owner of this origin declares them: all
    /// that a declaration is decided by.
    pub async fn owner_snapshot(
        &self,
        uid: &str,
        origin: &Origin,
        hashes: &[KeyHash],
    ) -> Result<OwnerSnapshot, StoreError> {
        let instance = &self.instance;
        let mut hashes: BTreeSet<KeyHash> = hashes.iter().copied().collect();
        loop {
            let mut call = OWNER_SNAPSHOT.key(instance.meta());
            call.key(instance.revoked())
                .key(instance.held(owner::shard(uid)));
            call.arg(uid).arg(origin.account());
            for hash in &hashes {
                call.key(instance.records(hash.shard()))
                    .key(instance.owners(hash.shard()));
                call.arg(hash.as_bytes());
            }
            let reply: Reply = self.connection.run_script(ATTEMPT, &call).await?;
            match more(&reply) {
                // The index names these besides.
                Some(more) => hashes.extend(more),
                None => {
                    let fields = done(reply, ATTEMPT).ok();
                    let snapshot = fields.and_then(|fields| OwnerSnapshot::read(&fields));
                    return snapshot.ok_or_else(|| StoreError::unexpected(ATTEMPT));
                }
            }
        }
    }
}

impl OwnerSnapshot {
    fn read(fields: &[Vec<u8>]) -> Option<Self> {
        let (head, told) = fields.split_at_checked(6)?;
        let mut snapshot = Self {
            number: number(&head[0])?,
            is_gone: head[1] == b"1",
            now: moment(&head[2])?,
            term: number(&head[3])?,
            position: Position::parse(&head[4], &head[5]),
            records: BTreeMap::new(),
            barred: BTreeMap::new(),
            taken: BTreeSet::new(),
        };
        for three in told.chunks_exact(3) {
            let (hash, value) = (hash(&three[1])?, &three[2]);
            match &three[0][..] {
                b"held" => {
                    snapshot.records.insert(hash, Record::decode(value));
                }
                b"barred" => {
                    snapshot.barred.insert(hash, moment(value)?);
                }
                b"taken" => {
                    snapshot.taken.insert(hash);
                }
                _ => return None,
            }
        }
        Some(snapshot)
    }
}
