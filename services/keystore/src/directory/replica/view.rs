//! State by which a request is judged.

use std::sync::Arc;

use arc_swap::Guard;
use water_domain::{KeyHash, Plan, PlanName, Timestamp};

use crate::directory::snapshot::Snapshot;
use crate::record::Record;

/// State of keys and plans at one moment, and Redis' time. Cheap to make; must not be kept across requests.
pub struct View {
    /// Copy, which is always there.
    pub(super) snapshot: Guard<Option<Arc<Snapshot>>>,
    pub(super) now: Timestamp,
}

impl View {
    fn snapshot(&self) -> &Snapshot {
        self.snapshot
            .as_ref()
            .expect("a view is only made of a copy that is there")
    }

    /// The record of a key, whatever its state. `None`: unknown, revoked or undecodable.
    pub fn record(&self, hash: &KeyHash) -> Option<Record> {
        self.snapshot().record(hash)
    }

    /// A plan by its name.
    pub fn plan(&self, name: &PlanName) -> Option<&Plan> {
        self.snapshot().plan(name)
    }

    /// Redis' time, by which keys begin, expire and retire.
    pub fn now(&self) -> Timestamp {
        self.now
    }
}
