//! One shard of the directory in a gate's memory: sorted digests beside packed records.
//!
//! A shard is never changed but replaced, so that readers need no lock. Three allocations for some
//! hundreds of keys make 36 bytes a key beside its packed record, without a hash table's free slots.

use water_domain::KeyHash;

/// Packed records by hash.
#[derive(Default, Debug)]
pub(super) struct Shard {
    /// In ascending order.
    hashes: Box<[KeyHash]>,
    /// Where in `packed` each record ends; it begins where the one before ends.
    ends: Box<[u32]>,
    packed: Box<[u8]>,
}

impl Shard {
    /// A shard of these fields, in any order, each hash once.
    pub(super) fn new(mut fields: Vec<(KeyHash, Vec<u8>)>) -> Self {
        fields.sort_unstable_by_key(|(hash, _)| *hash);
        let bytes = fields.iter().map(|(_, packed)| packed.len()).sum();
        Self::collect(
            fields.iter().map(|(hash, packed)| (*hash, &packed[..])),
            bytes,
        )
    }

    fn collect<'a>(fields: impl Iterator<Item = (KeyHash, &'a [u8])>, bytes: usize) -> Self {
        let (mut hashes, mut ends) = (Vec::new(), Vec::new());
        let mut packed = Vec::with_capacity(bytes);
        for (hash, record) in fields {
            hashes.push(hash);
            packed.extend(record);
            ends.push(u32::try_from(packed.len()).expect("a shard's records are far below 4 GiB"));
        }
        Self {
            hashes: hashes.into(),
            ends: ends.into(),
            packed: packed.into(),
        }
    }

    /// How many keys, decodable or not.
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The packed record of one key.
    pub(super) fn get(&self, hash: &KeyHash) -> Option<&[u8]> {
        let at = self.find(hash).ok()?;
        Some(self.record(at))
    }

    /// This shard with one record put, or with one removed.
    pub(super) fn with(&self, hash: KeyHash, record: Option<&[u8]>) -> Self {
        let (at, after) = match self.find(&hash) {
            Ok(at) => (at, at + 1),
            Err(at) => (at, at),
        };
        let fields = (0..at)
            .map(|index| (self.hashes[index], self.record(index)))
            .chain(record.map(|record| (hash, record)))
            .chain((after..self.len()).map(|index| (self.hashes[index], self.record(index))));
        Self::collect(fields, self.packed.len() + record.map_or(0, <[u8]>::len))
    }

    /// Where a hash is, or where it would stand. Digests are spread evenly, so that the guess is off
    /// by a few places: neighbouring memory, where a plain binary search would touch far more.
    fn find(&self, hash: &KeyHash) -> Result<usize, usize> {
        let bytes = hash.as_bytes();
        // The 28 bits behind the shard's 12, as a fraction of 2^32.
        let fraction = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) << 4;
        let guess = ((u64::from(fraction) * self.len() as u64) >> 32) as usize;
        let (mut low, mut high) = (guess, guess);
        let mut step = 4;
        while low > 0 && self.hashes[low] > *hash {
            low = low.saturating_sub(step);
            step *= 2;
        }
        while high < self.len() && self.hashes[high] < *hash {
            high = (high + step).min(self.len());
            step *= 2;
        }
        let within = &self.hashes[low..self.len().min(high + 1)];
        let found = within.binary_search(hash);
        found.map(|at| low + at).map_err(|at| low + at)
    }

    fn record(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.packed[start as usize..self.ends[at] as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Spread over the shard, as digests are, with some that stand close together.
    fn hash(byte: u8) -> KeyHash {
        let mut bytes = [0; 32];
        bytes[1] = byte / 2;
        bytes[5] = byte % 2;
        KeyHash::from_bytes(bytes)
    }

    proptest! {
        #[test]
        fn a_shard_holds_what_a_map_would(
            first in proptest::collection::btree_map(0..40u8, proptest::collection::vec(any::<u8>(), 0..5), 0..10),
            changes in proptest::collection::vec((0..40u8, proptest::option::of(proptest::collection::vec(any::<u8>(), 0..5))), 0..20),
        ) {
            let mut model: BTreeMap<u8, Vec<u8>> = first.clone();
            let fields = first.into_iter().rev().map(|(key, record)| (hash(key), record));
            let mut shard = Shard::new(fields.collect());
            for (key, record) in changes {
                shard = shard.with(hash(key), record.as_deref());
                match record {
                    Some(record) => model.insert(key, record),
                    None => model.remove(&key),
                };
            }
            prop_assert_eq!(shard.len(), model.len());
            for key in 0..40 {
                prop_assert_eq!(shard.get(&hash(key)), model.get(&key).map(Vec::as_slice));
            }
        }
    }
}
