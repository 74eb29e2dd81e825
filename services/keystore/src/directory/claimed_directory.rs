//! A directory under one term, and its calls: what every script of a writer has in common.

use redis::{Script, ScriptInvocation};
use tokio::sync::RwLock;

use super::WriteError;
use super::scripts::{Reply, done, number};
use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

/// A claimed directory.
#[derive(Debug)]
pub(super) struct ClaimedDirectory {
    pub(super) connection: Connection,
    pub(super) instance: Instance,
    /// The uid of the WaterDataApi's namespace.
    pub(super) owner: Box<str>,
    pub(super) term: u64,
    /// Written to by a rebuild, which replaces shards from what it read before: a change between
    /// would be lost.
    pub(super) rebuilding: RwLock<()>,
}

/// Position of a directory: a gate has a change once it has reached that change's position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Position {
    /// Counts rebuilds.
    pub generation: u64,
    /// The last change.
    pub seq: u64,
}

impl ClaimedDirectory {
    /// A call of `script` with what the fence asks for: `meta` is its first key, owner and term are
    /// its first arguments.
    pub(super) fn call(&self, script: &'static Script) -> ScriptInvocation<'static> {
        let mut call = script.key(self.instance.meta());
        call.arg(&*self.owner).arg(self.term);
        call
    }

    /// A call for a change, which the fence refuses where the directory is before `reached`.
    pub(super) fn change(
        &self,
        script: &'static Script,
        reached: Position,
    ) -> ScriptInvocation<'static> {
        let mut call = self.call(script);
        call.arg(reached.generation).arg(reached.seq);
        call
    }

    /// Runs the call once.
    pub(super) async fn run(
        &self,
        attempt: &'static str,
        call: &ScriptInvocation<'_>,
    ) -> Result<Vec<Vec<u8>>, WriteError> {
        let reply: Reply = self.connection.run_script(attempt, call).await?;
        done(reply, attempt)
    }
}

impl Position {
    /// Reads the first two fields of a write's reply.
    pub(super) fn read(fields: &[Vec<u8>], attempt: &'static str) -> Result<Self, StoreError> {
        let position = fields.first().zip(fields.get(1));
        position
            .and_then(|(seq, generation)| Self::parse(generation, seq))
            .ok_or_else(|| StoreError::unexpected(attempt))
    }

    /// Reads two fields; `None`: they are not two numbers.
    pub(super) fn parse(generation: &[u8], seq: &[u8]) -> Option<Self> {
        Some(Self {
            generation: number(generation)?,
            seq: number(seq)?,
        })
    }
}
