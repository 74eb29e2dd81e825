//! Writes of the operator to a directory that it has claimed.

use std::sync::Arc;

use tokio::sync::RwLock;
use water_domain::Plan;

use super::claimed_directory::{ClaimedDirectory, Position};
use super::scripts::{FORGET, PLANS, number};
use super::{WriteError, plans};
use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

/// Writes one instance's directory under one term. A later claim, by anybody, makes every call fail
/// with [`WriteError::Fenced`]. Clones share the term.
#[derive(Clone, Debug)]
pub struct Writer {
    pub(super) claimed: Arc<ClaimedDirectory>,
    /// Position at which the directory was seen.
    pub(super) reached: Position,
}

/// Tombstones and last uses that one script reads: a millisecond in which Redis serves nobody else.
const FORGOTTEN_AT_ONCE: u64 = 500;

impl Writer {
    pub(super) fn new(connection: Connection, instance: Instance, owner: &str, term: u64) -> Self {
        let claimed = ClaimedDirectory {
            connection,
            instance,
            owner: owner.into(),
            term,
            rebuilding: RwLock::new(()),
        };
        Self {
            claimed: Arc::new(claimed),
            reached: Position::default(),
        }
    }

    /// Returns this writer for a directory that was seen at a position: where it is before that, every change fails
    /// with [`WriteError::WentBack`].
    pub fn after(mut self, reached: Position) -> Self {
        self.reached = reached;
        self
    }

    /// The term under which this writes.
    pub fn term(&self) -> u64 {
        self.claimed.term
    }

    /// Makes the directory's plans exactly these, in one script.
    pub async fn set_plans(&self, wanted: &[Plan]) -> Result<Position, WriteError> {
        let _shared = self.claimed.rebuilding.read().await;
        let attempt = "write the plans";
        let mut call = self.claimed.change(&PLANS, self.reached);
        call.key(self.claimed.instance.feed())
            .key(self.claimed.instance.plans());
        for plan in wanted {
            call.arg(plan.name.as_str()).arg(plans::encode(plan.limits));
        }
        let fields = self.claimed.run(attempt, &call).await?;
        Ok(Position::read(&fields, attempt)?)
    }

    /// Forgets tombstones and last uses of 90 days ago and earlier, and returns their number. By then no backup that
    /// could bring such a key back is likely to be restored. Takes many short scripts.
    pub async fn forget_old(&self) -> Result<u64, WriteError> {
        let attempt = "forget old revocations and last uses";
        let unexpected = || StoreError::unexpected(attempt);
        let (mut cursor, mut forgotten) = (0, 0);
        loop {
            let _shared = self.claimed.rebuilding.read().await;
            let mut call = self.claimed.change(&FORGET, self.reached);
            call.key(self.claimed.instance.revoked())
                .key(self.claimed.instance.used());
            call.arg(cursor).arg(FORGOTTEN_AT_ONCE);
            let fields = self.claimed.run(attempt, &call).await?;
            let told: Option<Vec<u64>> = fields.iter().map(|field| number(field)).collect();
            let Some([next, tombstones, uses]) = told.as_deref() else {
                return Err(unexpected().into());
            };
            (cursor, forgotten) = (*next, forgotten + tombstones + uses);
            if cursor == 0 && *uses < FORGOTTEN_AT_ONCE {
                return Ok(forgotten);
            }
        }
    }
}
