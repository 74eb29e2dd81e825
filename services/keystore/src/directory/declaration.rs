//! Declaration of the operator for one ApiKey, and the one script that writes it, which compares it with the index and
//! with what is stored.

use std::collections::{BTreeMap, BTreeSet};

use redis::ScriptInvocation;
use water_domain::{AccountId, KeyHash, Timestamp};

use super::WriteError;
use super::claimed_directory::Position;
use super::scripts::{DECLARE, Reply, done, hash, moment, more, number};
use super::writer::Writer;
use crate::failure::StoreError;
use crate::owner::{self, Owner};
use crate::record::Record;

/// Content that the directory shall have of one owner from now on. Whatever else it holds is removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The ApiKey that declares.
    pub owner: Owner,
    /// The number from [`super::owner_snapshot::OwnerSnapshot`]: another one refuses the declaration. 0: nothing was
    /// declared before.
    pub number: u64,
    /// Record of each key for the gates.
    pub records: BTreeMap<KeyHash, Record>,
    /// Hashes whose removal leaves no tombstone, because their keys were never seen or their admission is lost. All
    /// other removals leave one.
    pub withdrawn: BTreeSet<KeyHash>,
    /// Hashes that get a tombstone although the directory may not hold them. One that another owner
    /// holds stays as it is. A hash that is revoked is not published, whatever `records` says.
    pub revoked: BTreeSet<KeyHash>,
    /// Tombstones to lift from hashes in `records`: exactly those of this time.
    pub reinstated: BTreeMap<KeyHash, Timestamp>,
    /// Origin of the keys, which decides which accounts the tombstones of this declaration bar.
    pub origin: Origin,
    /// Whether the ApiKey is being deleted: it then holds nothing, its uid gets a tombstone, and all
    /// its later declarations are refused.
    pub is_last: bool,
}

/// Origin of a key, which decides which accounts its tombstone bars.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The operator made it: nobody else has a right to its hash, so that its tombstone bars every
    /// account.
    Generated,
    /// The key was brought along by its hash under this account. Others may know the hash: a tombstone bars this
    /// account only.
    Brought(AccountId),
}

/// A declaration that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclarationReceipt {
    /// Position of its last change in the feed.
    pub applied: Position,
    /// The number that the next declaration must name.
    pub number: u64,
    /// The hashes of `records` that were not published; everything else was written.
    pub refused: BTreeMap<KeyHash, HashRefusal>,
}

/// Reason for which a hash was not published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashRefusal {
    /// A tombstone bars it.
    Revoked {
        /// The tombstone's time, by which it can be reinstated.
        at: Timestamp,
    },
    /// Another owner holds it.
    Taken,
}

const ATTEMPT: &str = "declare keys";
/// Largest number of hashes: two keys of Redis for each, and four more; a script that touches at most 1 000 does not
/// hold up the gates.
const MOST_HASHES: usize = 498;

impl Origin {
    /// Account in the form that the scripts take: `*` is every account.
    pub(super) fn account(&self) -> &str {
        match self {
            Self::Generated => "*",
            Self::Brought(account) => account.as_str(),
        }
    }
}

impl Declaration {
    /// Hashes that the declaration names.
    fn hashes(&self) -> BTreeSet<KeyHash> {
        let named = self.records.keys().chain(&self.withdrawn);
        named.chain(&self.revoked).copied().collect()
    }

    /// Operation on a hash, and its record.
    fn op(&self, hash: &KeyHash) -> (&'static str, Vec<u8>) {
        match self.records.get(hash) {
            Some(record) if !self.is_last && !self.revoked.contains(hash) => {
                ("hold", record.encode())
            }
            None if self.withdrawn.contains(hash) && !self.revoked.contains(hash) => {
                ("withdraw", Vec::new())
            }
            _ => ("revoke", Vec::new()),
        }
    }

    fn call(&self, writer: &Writer, hashes: &BTreeSet<KeyHash>) -> ScriptInvocation<'static> {
        let instance = &writer.claimed.instance;
        let mut call = writer.claimed.change(&DECLARE, writer.reached);
        call.key(instance.feed())
            .key(instance.revoked())
            .key(instance.held(owner::shard(&self.owner.uid)));
        call.arg(self.number)
            .arg(&*self.owner.uid)
            .arg(self.owner.to_string())
            .arg(self.origin.account())
            .arg(if self.is_last { "last" } else { "" });
        for hash in hashes {
            call.key(instance.records(hash.shard()))
                .key(instance.owners(hash.shard()));
            let (op, record) = self.op(hash);
            let lifted = self.reinstated.get(hash);
            let lifted = lifted.map(|time| time.as_millis().to_string());
            call.arg(hash.as_bytes())
                .arg(op)
                .arg(record)
                .arg(lifted.unwrap_or_default());
        }
        call
    }
}

impl Writer {
    /// Makes what the directory holds of one owner exactly what is declared. What the owner holds and the declaration
    /// does not name is removed, and what restricts is written, although some of its hashes may be refused. What is
    /// there already is not written again; the answer is then the directory's present position, which includes the
    /// earlier write.
    ///
    /// After an error without an answer the declaration may have been written, or may be yet. Another declaration or
    /// claim keeps it from that; the caller must not repeat it.
    pub async fn declare(
        &self,
        declaration: &Declaration,
    ) -> Result<DeclarationReceipt, WriteError> {
        let claimed = &self.claimed;
        let _shared = claimed.rebuilding.read().await;
        let mut hashes = declaration.hashes();
        loop {
            if hashes.len() > MOST_HASHES {
                return Err(WriteError::TooManyHashes);
            }
            let call = declaration.call(self, &hashes);
            let reply: Reply = claimed.connection.run_script(ATTEMPT, &call).await?;
            match more(&reply) {
                // The index names these, and the script must be given them too. It has done nothing.
                Some(more) => hashes.extend(more),
                None => return read(&done(reply, ATTEMPT)?),
            }
        }
    }
}

fn read(fields: &[Vec<u8>]) -> Result<DeclarationReceipt, WriteError> {
    let applied = Position::read(fields, ATTEMPT)?;
    let rest = fields.get(2..).and_then(|rest| rest.split_first());
    rest.and_then(|(told, refused)| {
        let refused = refused.chunks_exact(2).map(|pair| {
            let refusal = match &pair[1][..] {
                b"taken" => HashRefusal::Taken,
                time => HashRefusal::Revoked { at: moment(time)? },
            };
            Some((hash(&pair[0])?, refusal))
        });
        Some(DeclarationReceipt {
            applied,
            number: number(told)?,
            refused: refused.collect::<Option<_>>()?,
        })
    })
    .ok_or_else(|| StoreError::unexpected(ATTEMPT).into())
}
