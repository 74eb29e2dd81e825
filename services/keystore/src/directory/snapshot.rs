//! A gate's copy of the directory at one moment: never changed, only replaced, so that a request
//! sees one state of keys and plans.

use std::collections::HashMap;
use std::sync::Arc;

use water_domain::{KeyHash, Plan, PlanName};

use super::shard::Shard;
use crate::record::Record;

/// A change as the feed reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Put(KeyHash, Vec<u8>),
    Delete(KeyHash),
    Plan(Plan),
    PlanGone(PlanName),
}

/// Keys and plans, all as of one `seq` of one generation.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// The rebuild from which the copy comes.
    pub(super) generation: u64,
    /// The last change in it.
    pub(super) seq: u64,
    shards: Vec<Shard>,
    plans: Arc<HashMap<PlanName, Plan>>,
    /// Number of keys, decodable or not, as `meta` counts them.
    pub(super) keys: usize,
    /// Number of keys that cannot be decoded. They answer like unknown keys.
    pub(super) undecodable: usize,
}

impl Snapshot {
    /// A copy of what was loaded: all shards in order.
    pub(super) fn new(
        generation: u64,
        seq: u64,
        shards: Vec<LoadedShard>,
        plans: Vec<Plan>,
    ) -> Self {
        let keys = shards.iter().map(|loaded| loaded.shard.len()).sum();
        let undecodable = shards.iter().map(|loaded| loaded.undecodable).sum();
        let named = |plan: Plan| (plan.name.clone(), plan);
        Self {
            generation,
            seq,
            shards: shards.into_iter().map(|loaded| loaded.shard).collect(),
            plans: Arc::new(plans.into_iter().map(named).collect()),
            keys,
            undecodable,
        }
    }

    pub(super) fn record(&self, hash: &KeyHash) -> Option<Record> {
        let packed = self.shards[hash.shard().index()].get(hash)?;
        Record::decode(packed)
    }

    pub(super) fn plan(&self, name: &PlanName) -> Option<&Plan> {
        self.plans.get(name)
    }

    /// Applies one change.
    pub(super) fn apply(&mut self, seq: u64, event: Event) {
        self.seq = seq;
        match event {
            Event::Put(hash, packed) => self.replace(hash, Some(&packed)),
            Event::Delete(hash) => self.replace(hash, None),
            Event::Plan(plan) => {
                Arc::make_mut(&mut self.plans).insert(plan.name.clone(), plan);
            }
            Event::PlanGone(name) => {
                Arc::make_mut(&mut self.plans).remove(&name);
            }
        }
    }

    fn replace(&mut self, hash: KeyHash, packed: Option<&[u8]>) {
        let shard = &mut self.shards[hash.shard().index()];
        let before = shard.get(&hash);
        self.keys = self.keys + usize::from(packed.is_some()) - usize::from(before.is_some());
        self.undecodable = self.undecodable + bad(packed) - bad(before);
        *shard = shard.with(hash, packed);
    }
}

/// Number of records that cannot be decoded: 1 or 0.
fn bad(packed: Option<&[u8]>) -> usize {
    usize::from(packed.is_some_and(|packed| Record::decode(packed).is_none()))
}

/// A shard as it came from Redis.
pub(super) struct LoadedShard {
    shard: Shard,
    undecodable: usize,
}

impl LoadedShard {
    pub(super) fn new(fields: Vec<(KeyHash, Vec<u8>)>) -> Self {
        let undecodable = fields.iter().map(|(_, packed)| bad(Some(packed))).sum();
        Self {
            shard: Shard::new(fields),
            undecodable,
        }
    }
}
