//! The operator's hand on a directory that it has claimed.

use std::sync::Arc;

use tokio::sync::RwLock;
use water_domain::{KeyHash, Plan};

use super::change::{Change, Removal};
use super::contents::Contents;
use super::meta::Meta;
use super::scripts::{CHANGE, FORGET, PLANS, Reply, number};
use super::{WriteError, plans, rebuild};
use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

/// Writes one instance's directory under one term. A later claim, by anybody, makes every call fail
/// with [`WriteError::Fenced`]. Clones share the term.
#[derive(Clone, Debug)]
pub struct Writer(Arc<Claimed>);

#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) connection: Connection,
    pub(super) instance: Instance,
    pub(super) owner: Box<str>,
    pub(super) term: u64,
    /// Written to by a rebuild, which replaces shards from what it read before: a change between
    /// would be lost.
    rebuilding: RwLock<()>,
}

/// Where a written change stands: a gate has it once it has come to this `seq`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The directory's generation at the write.
    pub generation: u64,
    /// The directory's last change at the end of the write.
    pub seq: u64,
}

impl Writer {
    pub(super) fn new(connection: Connection, instance: Instance, owner: &str, term: u64) -> Self {
        Self(Arc::new(Claimed {
            connection,
            instance,
            owner: owner.into(),
            term,
            rebuilding: RwLock::new(()),
        }))
    }

    /// The term under which this writes.
    pub fn term(&self) -> u64 {
        self.0.term
    }

    /// Writes all of `changes` or none. What stands already is not written again; the answer is
    /// then the directory's present position, which includes the earlier write.
    ///
    /// After a timeout the changes may have been written: repeating them is safe.
    pub async fn apply(&self, changes: &[Change]) -> Result<Applied, WriteError> {
        let _shared = self.0.rebuilding.read().await;
        let Claimed {
            connection,
            instance,
            owner,
            term,
            ..
        } = &*self.0;
        let attempt = "write a key record";
        let mut call = CHANGE.prepare_invoke();
        call.key(instance.meta())
            .key(instance.feed())
            .key(instance.revoked());
        call.arg(&**owner).arg(*term);
        for change in changes {
            let (op, hash, key_owner, record) = match change {
                Change::Put {
                    hash,
                    record,
                    owner,
                    reinstate: false,
                } => ("put", hash, owner, record.encode()),
                Change::Put {
                    hash,
                    record,
                    owner,
                    reinstate: true,
                } => ("reinstate", hash, owner, record.encode()),
                Change::Remove {
                    hash,
                    owner,
                    removal: Removal::Revoke,
                } => ("revoke", hash, owner, Vec::new()),
                Change::Remove {
                    hash,
                    owner,
                    removal: Removal::Withdraw,
                } => ("withdraw", hash, owner, Vec::new()),
            };
            call.key(instance.records(hash.shard()))
                .key(instance.owners(hash.shard()));
            call.arg(op)
                .arg(hash.as_bytes())
                .arg(&*key_owner.uid)
                .arg(key_owner.to_string())
                .arg(record);
        }
        applied(connection.run_script(attempt, &call).await?, attempt)
    }

    /// Makes the directory's plans exactly these, in one script.
    pub async fn set_plans(&self, wanted: &[Plan]) -> Result<Applied, WriteError> {
        let _shared = self.0.rebuilding.read().await;
        let Claimed {
            connection,
            instance,
            owner,
            term,
            ..
        } = &*self.0;
        let attempt = "write the plans";
        let mut call = PLANS.prepare_invoke();
        call.key(instance.meta())
            .key(instance.feed())
            .key(instance.plans());
        call.arg(&**owner).arg(*term);
        for plan in wanted {
            call.arg(plan.name.as_str()).arg(plans::encode(plan.limits));
        }
        applied(connection.run_script(attempt, &call).await?, attempt)
    }

    /// Forgets revocations of 90 days ago and earlier, and answers how many. By then no backup that
    /// could bring such a key back is likely to be restored.
    pub async fn forget_old_revocations(&self) -> Result<u64, WriteError> {
        let Claimed {
            connection,
            instance,
            owner,
            term,
            ..
        } = &*self.0;
        let attempt = "forget old revocations";
        let mut call = FORGET.key(instance.meta());
        call.key(instance.revoked()).arg(&**owner).arg(*term);
        let reply: Reply = connection.run_script(attempt, &call).await?;
        let fields = reply.done(attempt)?;
        let forgotten = fields.first().and_then(|field| number(field));
        Ok(forgotten.ok_or_else(|| StoreError::unexpected(attempt))?)
    }

    /// Replaces everything by what `wanted` returns, under a new generation. `wanted` is called
    /// when no other write of this writer is under way, and others wait until the rebuild is over,
    /// so that none is lost. Answers `meta` as it stands then, and the hashes that were left out
    /// because they had been revoked.
    ///
    /// Gates keep their copies until the rebuild is complete. When it fails midway the directory
    /// stays incomplete, and must be rebuilt.
    pub async fn rebuild(
        &self,
        wanted: impl FnOnce() -> Contents,
    ) -> Result<(Meta, Vec<KeyHash>), WriteError> {
        let _alone = self.0.rebuilding.write().await;
        rebuild::run(&self.0, wanted()).await
    }
}

pub(super) fn applied(reply: Reply, attempt: &'static str) -> Result<Applied, WriteError> {
    let fields = reply.done(attempt)?;
    let [seq, generation] = &fields[..] else {
        return Err(StoreError::unexpected(attempt).into());
    };
    match (number(seq), number(generation)) {
        (Some(seq), Some(generation)) => Ok(Applied { generation, seq }),
        _ => Err(StoreError::unexpected(attempt).into()),
    }
}
