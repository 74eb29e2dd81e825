//! The directory in Redis, as `claim.lua`, `declare.lua`, `directory.lua` and the rebuild's scripts leave it.
//!
//! A round of the feed is read to its end, so that a gate which continues in one generation on one
//! server comes to what `records` holds: the feed itself is not part of the state. Evictions are left
//! out, and so are plans.

use crate::mistake::Mistake;
use crate::records::{Hashes, KEYS, Records};

/// Position of a write.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Applied {
    pub generation: u8,
    pub seq: u8,
}

/// `meta`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Meta {
    pub term: u8,
    pub generation: u8,
    pub seq: u8,
    pub complete: bool,
    /// The `master_replid` that the operator verified; `None`: none yet.
    pub server: Option<bool>,
    /// The uid of the WaterDataApi.
    pub api: bool,
}

impl Meta {
    /// Position of the last write.
    pub fn position(&self) -> Applied {
        Applied {
            generation: self.generation,
            seq: self.seq,
        }
    }
}

/// Data that a loss takes away. The leases are with their gates.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Store {
    pub meta: Option<Meta>,
    pub records: Records,
    /// Number of the last change by owner.
    pub numbers: [u8; KEYS],
    /// Tombstones that bar everybody, and those that bar one account, which is each key's own.
    pub revoked: Hashes,
    pub revoked_of: [Hashes; KEYS],
    /// Tombstones of owners.
    pub gone: [bool; KEYS],
}

/// Declaration for one ApiKey.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Declaration {
    /// Redis that it is for.
    pub store: u8,
    pub term: u8,
    pub number: u8,
    pub records: Records,
    pub withdrawn: Hashes,
    pub revoked: Hashes,
    pub is_last: bool,
    /// Whether its tombstones bar its own account only.
    pub is_brought: bool,
}

/// Outcome of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Declared {
    Done {
        applied: Applied,
        number: u8,
    },
    /// Another came first, or the owner was revoked permanently.
    Outdated,
    /// The term, server or completeness does not fit: the directory has to be claimed again.
    Refused,
}

impl Store {
    /// Whether it holds hashes of the key, or has held some.
    pub fn knows(&self, key: usize) -> bool {
        let mut records = self.records.owned_by(key);
        records.next().is_some() || self.gone[key] || self.numbers[key] > 0
    }

    pub fn generation(&self) -> u8 {
        self.meta.map_or(0, |meta| meta.generation)
    }

    /// Whether a tombstone keeps the key from the hash.
    pub fn bars(&self, key: usize, hash: u8) -> bool {
        self.revoked.and(self.revoked_of[key]).has(hash)
    }

    pub fn is_taken(&self, key: usize, hash: u8, mistake: Option<Mistake>) -> bool {
        let holder = self.records.get(hash);
        holder.is_some_and(|record| usize::from(record.owner) != key)
            && mistake != Some(Mistake::TakenIgnored)
    }

    /// Runs a declaration. `number` is the next one that was never used.
    pub fn declare(
        &mut self,
        key: usize,
        wanted: &Declaration,
        server: bool,
        number: u8,
        mistake: Option<Mistake>,
    ) -> Declared {
        let is_fenced = |term| term == wanted.term || mistake == Some(Mistake::ClaimWithoutFence);
        let Some(mut meta) = self.meta.filter(|meta| is_fenced(meta.term)) else {
            return Declared::Refused;
        };
        let is_verified = meta.complete && meta.server == Some(server);
        if !is_verified && mistake != Some(Mistake::WriteToUnverified) {
            return Declared::Refused;
        }
        if self.gone[key] || self.numbers[key] != wanted.number {
            return Declared::Outdated;
        }
        let before = *self;
        let held: Hashes = before.records.owned_by(key).map(|(hash, _)| hash).collect();
        let hold: Hashes = wanted.records.iter().map(|(hash, _)| hash).collect();
        let mut named = hold.and(wanted.withdrawn).and(wanted.revoked);
        if mistake != Some(Mistake::DeclaredInPart) {
            named = named.and(held);
        }
        for hash in named.iter() {
            let is_taken = before.is_taken(key, hash, mistake);
            let record = wanted
                .records
                .get(hash)
                .filter(|_| !wanted.revoked.has(hash) && !wanted.is_last);
            let is_revoked = wanted.revoked.has(hash) || !wanted.withdrawn.has(hash);
            match record {
                Some(record) if !is_taken && !before.bars(key, hash) => {
                    self.records.put(hash, record);
                    continue;
                }
                None if is_revoked && !is_taken && !before.bars(key, hash) => {
                    let barred = if wanted.is_brought {
                        &mut self.revoked_of[key]
                    } else {
                        &mut self.revoked
                    };
                    *barred = barred.and(Hashes::one(hash));
                }
                _ => {}
            }
            if held.has(hash) {
                self.records.remove(hash);
            }
        }
        self.gone[key] |= wanted.is_last;
        if self.records != before.records {
            meta.seq += 1;
        }
        if *self != before {
            self.numbers[key] = if wanted.is_last { 0 } else { number };
        }
        self.meta = Some(meta);
        Declared::Done {
            applied: meta.position(),
            number: self.numbers[key],
        }
    }

    /// The end of a rebuild: these records, but for what a tombstone bars.
    pub fn replace(&mut self, wanted: &Records, number: u8) {
        self.records = *wanted;
        for (hash, record) in wanted.iter() {
            let owner = usize::from(record.owner);
            let is_barred = self.bars(owner, hash) || self.gone[owner];
            if is_barred {
                self.records.remove(hash);
            }
        }
        for key in 0..KEYS {
            let is_held = self.records.owned_by(key).next().is_some();
            self.numbers[key] = if is_held { number } else { 0 };
        }
    }
}
