//! The key directory in Redis: written by the operator alone, held in memory by every gate.
//!
//! One side [`Directory::claim`]s it, which fences all earlier writers by a *term*, and writes through the [`Writer`].
//! It declares, owner by owner, everything that the directory shall hold of it: one script compares that with an index
//! of what it holds, and takes the next `seq` and puts an entry into the feed for each change. A *number* per owner
//! refuses a declaration that was decided on an earlier state. A key that is revoked leaves a *tombstone*, which bars
//! it for 90 days. The *generation* counts rebuilds. The other side is a [`replica::Replica`]: it loads everything,
//! follows the feed, and reports its position in its lease.
//!
//! [`Instance`] names the keys of Redis; the scripts describe the content of each.

mod batches;
pub mod claimed_directory;
mod clock;
pub mod contents;
pub mod declaration;
mod feed;
pub mod lease;
mod load;
pub mod meta;
pub mod owner_snapshot;
mod plans;
pub mod rebuild;
pub mod replica;
mod scripts;
mod shard;
mod snapshot;
pub mod writer;

use redis::{InfoDict, Value, cmd, pipe};
use water_domain::key::Shard;
use water_domain::{KeyId, Timestamp};

use crate::connection::{Connection, ConnectionSettings};
use crate::failure::StoreError;
use crate::keys::Instance;
use claimed_directory::Position;
use meta::Meta;
use scripts::{CLAIM, DOUBT, Reply, done};
use writer::Writer;

/// Rights of a gate's Redis user in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateRights {
    /// The gate cannot change the directory.
    Reads,
    /// The gate can change it: an attacker in a gate could make keys, or bring revoked ones back.
    Writes,
    /// Redis has no user of that name.
    NoUser,
}

/// Directory of one instance, with the operations that need no claim.
#[derive(Clone, Debug)]
pub struct Directory {
    connection: Connection,
    instance: Instance,
}

/// Reason for which nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Redis did not do it; after [`crate::Reason::Slow`] or `Down` it may have.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A later leader has claimed the directory.
    #[error("the key directory is claimed by a later leader (term {stored})")]
    Fenced {
        /// The term in the directory.
        stored: u64,
    },
    /// The directory belongs to a namespace with another uid: another cluster or an earlier
    /// installation. Nothing is written until its uid is given as the one to take over.
    #[error("the key directory belongs to the namespace with uid {uid}")]
    Owned {
        /// The owner's uid.
        uid: String,
    },
    /// `meta` is gone or cannot be read: Redis was wiped. Claim and rebuild.
    #[error("the key directory has no readable meta: Redis lost its data")]
    Wiped,
    /// Redis restarted or failed over since the directory was rebuilt: what it holds may have gone
    /// back in time. Claim and rebuild.
    #[error("Redis restarted or failed over since the key directory was rebuilt")]
    Unverified,
    /// The directory is at a position before one at which the writer has seen it; it is marked as not complete. Claim
    /// and rebuild.
    #[error("Redis went back to an earlier state of the key directory")]
    WentBack,
    /// A later version of the operator has written the directory.
    #[error("the key directory has schema {stored}, which a later version wrote")]
    Schema {
        /// The schema of the directory.
        stored: u64,
    },
    /// The keys that are held of the owner have changed since the declaration was decided: decide again.
    #[error("another declaration of the same ApiKey came first (number {number})")]
    Outdated {
        /// The number of the last change.
        number: u64,
    },
    /// The owner has declared for the last time.
    #[error("the ApiKey was deleted: it declares no more")]
    OwnerGone,
    /// The declaration and what is held of its owner name more hashes than one script may touch.
    #[error("the ApiKey has too many keys")]
    TooManyHashes,
    /// Redis restarted, or another rebuild began, while this one ran; or the last one did not end; or
    /// Redis has evicted what a declaration met. Rebuild again.
    #[error("the key directory is not complete")]
    Interrupted,
}

impl water_domain::Fault for WriteError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Store(error) => error.is_transient(),
            Self::Fenced { .. } | Self::Wiped | Self::Unverified | Self::WentBack => true,
            Self::Interrupted | Self::Outdated { .. } => true,
            Self::Owned { .. } | Self::Schema { .. } => false,
            Self::OwnerGone | Self::TooManyHashes => false,
        }
    }
}

impl Directory {
    /// The directory of `instance`. Sends nothing yet.
    pub fn new(connection: Connection, instance: Instance) -> Self {
        Self {
            connection,
            instance,
        }
    }

    /// Takes the next term, so that every earlier writer is refused from here on.
    ///
    /// `owner` is the uid of the WaterDataApi's namespace; a directory of another uid is left alone
    /// unless that uid is given in `take_over`. `api` is the uid of the WaterDataApi: what another
    /// one has left is not complete. The caller reads its Lease again before it writes. When the
    /// returned `meta` is not complete, or does not carry the server's replication id
    /// ([`Observation::needs_rebuild`]), the first write must be a rebuild.
    pub async fn claim(
        &self,
        owner: &str,
        api: &str,
        take_over: Option<&str>,
    ) -> Result<(Writer, Meta), WriteError> {
        let mut call = CLAIM.key(self.instance.meta());
        call.arg(owner).arg(take_over.unwrap_or_default()).arg(api);
        let attempt = "claim the key directory";
        let reply: Reply = self.connection.run_script(attempt, &call).await?;
        let fields = done(reply, attempt)?;
        let meta = Meta::decode(fields.first().map(Vec::as_slice))
            .ok_or_else(|| StoreError::unexpected(attempt))?;
        let writer = Writer::new(
            self.connection.clone(),
            self.instance.clone(),
            owner,
            meta.term,
        );
        Ok((writer, meta))
    }

    /// Marks the directory as not complete if it is before a position at which it was seen, unless somebody has claimed
    /// it after `term`: the next claim must rebuild it.
    pub async fn doubt(&self, owner: &str, term: u64, reached: Position) -> Result<(), WriteError> {
        let mut call = DOUBT.key(self.instance.meta());
        call.arg(owner).arg(term);
        call.arg(reached.generation).arg(reached.seq);
        let attempt = "mark a key directory that went back";
        let reply: Reply = self.connection.run_script(attempt, &call).await?;
        done(reply, attempt).map(drop)
    }

    /// Times at which these keys were last used, as the gates have reported.
    pub async fn last_used(&self, keys: &[KeyId]) -> Result<Vec<Option<Timestamp>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = cmd("ZMSCORE");
        command.arg(self.instance.used());
        for key in keys {
            command.arg(key.as_str());
        }
        let scores: Vec<Option<f64>> = self.connection.run("read last use", &command).await?;
        let moment = |score: Option<f64>| Timestamp::from_millis(score? as i64);
        Ok(scores.into_iter().map(moment).collect())
    }

    /// Reaction of the server to a full memory: the setting `maxmemory-policy`.
    pub async fn eviction_policy(&self) -> Result<Option<String>, StoreError> {
        let mut commands = pipe();
        // The key names the server, which in a Redis Cluster is one of several.
        commands.cmd("GET").arg(self.instance.meta());
        commands.cmd("INFO").arg("memory");
        let attempt = "ask for the eviction policy";
        let (_, info): (Value, InfoDict) = self.connection.run_all(attempt, &commands).await?;
        Ok(info.get("maxmemory_policy"))
    }

    /// Rights of the Redis user of `gate` in the directory. Asks without trying, by `ACL DRYRUN`.
    pub async fn gate_rights(&self, gate: &ConnectionSettings) -> Result<GateRights, StoreError> {
        let shard = Shard::all().next().expect("there are 4096");
        let instance = &self.instance;
        let attempts = [
            ("HSET", instance.records(shard), &["hash", "record"][..]),
            ("HSET", instance.owners(shard), &["hash", "owner"]),
            ("HDEL", instance.revoked(), &["hash"]),
            ("HSET", instance.plans(), &["plan", "limits"]),
            ("SET", instance.meta(), &["{}"]),
            // Gates take a record from the feed as they take one from the directory.
            ("XADD", instance.feed(), &["*", "change", "record"]),
        ];
        for (command, key, arguments) in attempts {
            let mut question = cmd("ACL");
            question.arg("DRYRUN").arg(gate.user());
            question.arg(command).arg(key).arg(arguments);
            let attempt = "ask what the gate's Redis user may do";
            // OK, or a sentence that says why not.
            match self.connection.run(attempt, &question).await {
                Ok(Value::Okay) => return Ok(GateRights::Writes),
                Ok(_) => {}
                Err(error) if error.says("User '") => return Ok(GateRights::NoUser),
                Err(error) => return Err(error),
            }
        }
        Ok(GateRights::Reads)
    }
}
