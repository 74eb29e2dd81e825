//! The directory in Redis, as far as the protocol depends on it.
//!
//! A round of the feed is read to its end, so that a gate which continues in one generation on one
//! server comes to what `records` holds: the feed itself is not part of the state.

/// A set of hashes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hashes(pub u8);

impl Hashes {
    pub fn one(hash: u8) -> Self {
        Self(1 << hash)
    }

    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn len(self) -> u8 {
        self.0.count_ones() as u8
    }
}

/// `meta`. The owner, the schema and the count take no part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Meta {
    pub term: u8,
    pub generation: u8,
    pub seq: u8,
    pub complete: bool,
    /// The `master_replid` that the operator verified; `None`: none yet.
    pub server: Option<bool>,
}

impl Meta {
    /// Of the last write.
    pub fn position(&self) -> Applied {
        Applied {
            generation: self.generation,
            seq: self.seq,
        }
    }
}

/// What a loss takes away, but for the leases, which stand beside their gates.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Store {
    pub meta: Option<Meta>,
    pub records: Hashes,
    pub revoked: Hashes,
}

/// Where a write stands.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Applied {
    pub generation: u8,
    pub seq: u8,
}

/// A gate's lease as it is stored.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lease {
    pub applied: Applied,
    /// Its time of renewal is longer ago than the grace and the margin.
    pub run_out: bool,
}
