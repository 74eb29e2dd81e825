//! Shard of the directory in a gate's memory: a table of places, then hashes and packed records.
//!
//! A shard is never changed but replaced, so that readers need no lock. With a million keys none of this is in the
//! processor's cache: a look-up reads two places of one allocation, where each further one would cost a request 0.2 µs.
//! That makes 40 bytes a key in addition to its packed record.

use std::sync::Arc;

use water_domain::KeyHash;

/// Packed records by hash. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    keys: usize,
    /// Table, one number longer than the keys: the place at which the entries of each bucket begin, and the one at
    /// which the last one's end. Then the entries in ascending order: hash, length of the record, record.
    bytes: Arc<[u8]>,
}

/// Bytes of each place and of each record's length.
const NUMBER: usize = size_of::<u32>();
const HASH: usize = size_of::<KeyHash>();

impl Shard {
    /// A shard of these fields, in any order, each hash once.
    pub(super) fn new(mut fields: Vec<(KeyHash, Vec<u8>)>) -> Self {
        fields.sort_unstable_by_key(|(hash, _)| *hash);
        let fields = fields.iter().map(|(hash, packed)| (*hash, &packed[..]));
        Self::collect(fields)
    }

    /// A shard of these fields in ascending order.
    fn collect<'a>(fields: impl Iterator<Item = (KeyHash, &'a [u8])> + Clone) -> Self {
        let keys = fields.clone().count();
        let table = (keys + 1) * NUMBER;
        let entries: usize = fields
            .clone()
            .map(|(_, packed)| HASH + NUMBER + packed.len())
            .sum();
        let mut bytes = Vec::with_capacity(table + entries);
        let mut place = table;
        for (hash, packed) in fields.clone() {
            while bytes.len() / NUMBER <= bucket(&hash, keys) {
                bytes.extend(number(place));
            }
            place += HASH + NUMBER + packed.len();
        }
        while bytes.len() < table {
            bytes.extend(number(place));
        }
        for (hash, packed) in fields {
            bytes.extend(hash.as_bytes());
            bytes.extend(number(packed.len()));
            bytes.extend(packed);
        }
        Self {
            keys,
            bytes: bytes.into(),
        }
    }

    /// Number of keys, decodable or not.
    pub(super) fn len(&self) -> usize {
        self.keys
    }

    /// The packed record of one key.
    pub(super) fn get(&self, hash: &KeyHash) -> Option<&[u8]> {
        if self.keys == 0 {
            return None;
        }
        let bucket = bucket(hash, self.keys);
        let mut entries = Entries(&self.bytes[self.place(bucket)..self.place(bucket + 1)]);
        let (_, packed) = entries.find(|(found, _)| found == hash)?;
        Some(packed)
    }

    /// Shard with one record put, or with one removed.
    pub(super) fn with(&self, hash: KeyHash, record: Option<&[u8]>) -> Self {
        let before = self.entries().take_while(|(other, _)| *other < hash);
        let after = self.entries().skip_while(|(other, _)| *other <= hash);
        let put = record.map(|record| (hash, record));
        Self::collect(before.chain(put).chain(after))
    }

    fn entries(&self) -> Entries<'_> {
        Entries(&self.bytes[self.place(0)..])
    }

    /// Place at which the entries of a bucket begin.
    fn place(&self, bucket: usize) -> usize {
        let (place, _) = read_number(&self.bytes[bucket * NUMBER..]);
        place
    }
}

/// Bucket, of so many, that a hash belongs to. Digests are spread evenly, so that each has about one key; the order of
/// hashes is that of buckets.
fn bucket(hash: &KeyHash, buckets: usize) -> usize {
    let bytes = hash.as_bytes();
    // The 28 bits behind the shard's 12, as a fraction of 2^32.
    let fraction = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) << 4;
    ((u64::from(fraction) * buckets as u64) >> 32) as usize
}

/// Hashes and records, as they follow each other.
#[derive(Clone)]
struct Entries<'a>(&'a [u8]);

impl<'a> Iterator for Entries<'a> {
    type Item = (KeyHash, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (hash, rest) = self.0.split_first_chunk::<HASH>()?;
        let (length, rest) = read_number(rest);
        let (packed, rest) = rest.split_at(length);
        self.0 = rest;
        Some((KeyHash::from_bytes(*hash), packed))
    }
}

fn number(number: usize) -> [u8; NUMBER] {
    let number = u32::try_from(number).expect("a shard's records are far below 4 GiB");
    number.to_ne_bytes()
}

fn read_number(bytes: &[u8]) -> (usize, &[u8]) {
    let (number, rest) = bytes
        .split_first_chunk()
        .expect("a shard is read as it was written");
    (u32::from_ne_bytes(*number) as usize, rest)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Hash in a part of one shard, whose digests begin alike, with some that are close together.
    fn hash(byte: u8) -> KeyHash {
        let mut bytes = [0xab; 32];
        bytes[1] = 0xc0 | (byte / 8);
        bytes[2] = byte / 2;
        bytes[5] = byte % 2;
        KeyHash::from_bytes(bytes)
    }

    #[test]
    fn evenly_spread_hashes_have_a_bucket_each() {
        // The first 12 bits are the shard's.
        let hashes = [0x0, 0x4, 0x8, 0xc].map(|quarter| {
            let mut bytes = [0xab; 32];
            bytes[1] = 0xc0 | quarter;
            KeyHash::from_bytes(bytes)
        });
        assert_eq!(hashes.map(|hash| bucket(&hash, 4)), [0, 1, 2, 3]);
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
