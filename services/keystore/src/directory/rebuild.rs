//! Writes the whole directory again: begins a generation, replaces shard after shard, then the index, completes it. A
//! shard is not cleared before it is written: while the slot of a Redis Cluster moves, what is deleted cannot be
//! written again.

use std::collections::{HashMap, HashSet};

use water_domain::KeyHash;
use water_domain::key::Shard;

use super::claimed_directory::{ClaimedDirectory, Position};
use super::contents::{Contents, Entry};
use super::meta::Meta;
use super::scripts::{REBUILD_BEGIN, REBUILD_END, REBUILD_HELD, REBUILD_SHARDS, hash};
use super::writer::Writer;
use super::{WriteError, plans};
use crate::failure::StoreError;
use crate::owner::{self, Owner};

/// Result of a rebuild.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebuilt {
    /// `meta` after the rebuild.
    pub meta: Meta,
    /// The hashes that were left out, because they or their owners had been revoked.
    pub left_out: Vec<KeyHash>,
}

/// Shards in one script. 10 000 keys then make scripts of about 150 keys: a few milliseconds, in
/// which Redis serves nobody else.
const SHARDS_PER_SCRIPT: usize = 64;
const ATTEMPT: &str = "rebuild the key directory";

impl Writer {
    /// Replaces everything by what `wanted` returns, under a new generation. `wanted` is called
    /// when no other write of this writer is under way, and others wait until the rebuild is over,
    /// so that none is lost. What a tombstone bars is left out.
    ///
    /// Gates keep their copies until the rebuild is complete. When it fails midway the directory
    /// stays incomplete, and must be rebuilt.
    pub async fn rebuild(&self, wanted: impl FnOnce() -> Contents) -> Result<Rebuilt, WriteError> {
        let claimed = &self.claimed;
        let _alone = claimed.rebuilding.write().await;
        let wanted = wanted();
        let generation = begin(claimed, &wanted).await?;
        let all: Vec<Shard> = Shard::all().collect();
        let entries = by_shard(wanted.entries);
        let mut left_out = Vec::new();
        for part in all.chunks(SHARDS_PER_SCRIPT) {
            left_out.extend(write_records(claimed, generation, part, &entries).await?);
        }
        let index = index(&entries, &left_out);
        for part in all.chunks(SHARDS_PER_SCRIPT) {
            write_index(claimed, generation, part, &index).await?;
        }
        let meta = end(claimed, generation, &index).await?;
        Ok(Rebuilt { meta, left_out })
    }
}

async fn begin(claimed: &ClaimedDirectory, wanted: &Contents) -> Result<u64, WriteError> {
    let mut call = claimed.call(&REBUILD_BEGIN);
    call.key(claimed.instance.plans());
    for plan in &wanted.plans {
        call.arg(plan.name.as_str()).arg(plans::encode(plan.limits));
    }
    let fields = claimed.run(ATTEMPT, &call).await?;
    Ok(Position::read(&fields, ATTEMPT)?.generation)
}

fn by_shard(mut entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    // Of two entries with one hash the first counts, as a second declaration would be refused.
    entries.sort_by_key(|entry| entry.hash);
    entries.dedup_by_key(|entry| entry.hash);
    let mut shards: Vec<Vec<Entry>> = Shard::all().map(|_| Vec::new()).collect();
    for entry in entries {
        shards[entry.hash.shard().index()].push(entry);
    }
    shards
}

/// Replaces the shards of `part`, and returns the tombstoned hashes among what was declared for them.
async fn write_records(
    claimed: &ClaimedDirectory,
    generation: u64,
    part: &[Shard],
    entries: &[Vec<Entry>],
) -> Result<Vec<KeyHash>, WriteError> {
    let mut call = claimed.call(&REBUILD_SHARDS);
    call.key(claimed.instance.revoked());
    call.arg(generation);
    for &shard in part {
        call.key(claimed.instance.records(shard))
            .key(claimed.instance.owners(shard));
        let entries = &entries[shard.index()];
        call.arg(entries.len());
        for entry in entries {
            call.arg(entry.hash.as_bytes())
                .arg(entry.record.encode())
                .arg(&*entry.owner.uid)
                .arg(entry.owner.to_string())
                .arg(entry.origin.account());
        }
    }
    let left_out = claimed.run(ATTEMPT, &call).await?;
    let hashes: Option<Vec<KeyHash>> = left_out.iter().map(|field| hash(field)).collect();
    Ok(hashes.ok_or_else(|| StoreError::unexpected(ATTEMPT))?)
}

/// Owners of one shard with what was written of theirs.
type Index<'a> = Vec<(&'a Owner, Vec<KeyHash>)>;

/// Index by shard; an owner without a written key has no entry.
fn index<'a>(entries: &'a [Vec<Entry>], left_out: &[KeyHash]) -> Vec<Index<'a>> {
    let left_out: HashSet<&KeyHash> = left_out.iter().collect();
    let mut owners: HashMap<&str, (&Owner, Vec<KeyHash>)> = HashMap::new();
    for Entry { hash, owner, .. } in entries.iter().flatten() {
        if !left_out.contains(hash) {
            let held = owners.entry(&owner.uid);
            held.or_insert((owner, Vec::new())).1.push(*hash);
        }
    }
    let mut shards: Vec<Index> = Shard::all().map(|_| Vec::new()).collect();
    for (owner, hashes) in owners.into_values() {
        shards[owner::shard(&owner.uid).index()].push((owner, hashes));
    }
    shards
}

async fn write_index(
    claimed: &ClaimedDirectory,
    generation: u64,
    part: &[Shard],
    index: &[Index<'_>],
) -> Result<(), WriteError> {
    let mut call = claimed.call(&REBUILD_HELD);
    call.arg(generation);
    for &shard in part {
        call.key(claimed.instance.held(shard));
        let owners = &index[shard.index()];
        call.arg(owners.len());
        for (owner, hashes) in owners {
            call.arg(&*owner.uid).arg(content(owner, hashes));
        }
    }
    claimed.run(ATTEMPT, &call).await?;
    Ok(())
}

/// An entry of the index without its number; `held.lua` has its form.
fn content(owner: &Owner, hashes: &[KeyHash]) -> Vec<u8> {
    let mut content = format!("{}/{}\n", owner.namespace, owner.name).into_bytes();
    for hash in hashes {
        content.extend(hash.as_bytes());
    }
    content
}

async fn end(
    claimed: &ClaimedDirectory,
    generation: u64,
    index: &[Index<'_>],
) -> Result<Meta, WriteError> {
    let owners = index.iter().flatten();
    let records: usize = owners.clone().map(|(_, hashes)| hashes.len()).sum();
    let mut call = claimed.call(&REBUILD_END);
    call.key(claimed.instance.revoked());
    call.arg(generation).arg(records).arg(owners.count());
    let fields = claimed.run(ATTEMPT, &call).await?;
    let meta = Meta::decode(fields.first().map(Vec::as_slice));
    meta.ok_or_else(|| StoreError::unexpected(ATTEMPT).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_index_is_the_owners_path_and_its_hashes() {
        let owner = Owner::decode("4f1c water/acme-prod").unwrap();
        let hashes = [*b"an example of a hash of 32 bytes", [b'\n'; 32]];
        let stored = content(&owner, &hashes.map(KeyHash::from_bytes));
        let expected = [b"water/acme-prod\n", hashes.as_flattened()].concat();
        assert_eq!(stored, expected);
    }
}
