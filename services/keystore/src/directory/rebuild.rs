//! Writing the whole directory anew: begin a generation, replace shard after shard, complete it.

use water_domain::KeyHash;
use water_domain::key::Shard;

use super::contents::{Contents, Entry};
use super::meta::Meta;
use super::scripts::{REBUILD_BEGIN, REBUILD_END, REBUILD_SHARDS, Reply, hash};
use super::writer::{Claimed, applied};
use super::{WriteError, plans};
use crate::failure::StoreError;

/// Shards in one script. 10 000 keys then make scripts of about 150 keys: a few milliseconds, in
/// which Redis serves nobody else.
const SHARDS_PER_SCRIPT: usize = 64;
const ATTEMPT: &str = "rebuild the key directory";

pub(super) async fn run(
    claimed: &Claimed,
    wanted: Contents,
) -> Result<(Meta, Vec<KeyHash>), WriteError> {
    let generation = begin(claimed, &wanted).await?;
    let mut shards = by_shard(wanted.entries);
    let declared: usize = shards.iter().map(Vec::len).sum();
    let mut revoked = Vec::new();
    let all: Vec<Shard> = Shard::all().collect();
    for part in all.chunks(SHARDS_PER_SCRIPT) {
        revoked.extend(replace(claimed, generation, part, &mut shards).await?);
    }
    let meta = end(claimed, generation, declared - revoked.len()).await?;
    Ok((meta, revoked))
}

async fn begin(claimed: &Claimed, wanted: &Contents) -> Result<u64, WriteError> {
    let mut call = REBUILD_BEGIN.prepare_invoke();
    call.key(claimed.instance.meta())
        .key(claimed.instance.plans());
    call.arg(&*claimed.owner).arg(claimed.term);
    for plan in &wanted.plans {
        call.arg(plan.name.as_str()).arg(plans::encode(plan.limits));
    }
    let reply: Reply = claimed.connection.run_script(ATTEMPT, &call).await?;
    Ok(applied(reply, ATTEMPT)?.generation)
}

fn by_shard(mut entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    // Of two entries with one hash the first counts, as a second put would be refused.
    entries.sort_by_key(|entry| entry.hash);
    entries.dedup_by_key(|entry| entry.hash);
    let mut shards: Vec<Vec<Entry>> = Shard::all().map(|_| Vec::new()).collect();
    for entry in entries {
        shards[entry.hash.shard().index()].push(entry);
    }
    shards
}

/// Replaces the shards of `part`, and answers the revoked hashes among what was declared for them.
async fn replace(
    claimed: &Claimed,
    generation: u64,
    part: &[Shard],
    shards: &mut [Vec<Entry>],
) -> Result<Vec<KeyHash>, WriteError> {
    let mut call = REBUILD_SHARDS.prepare_invoke();
    call.key(claimed.instance.meta())
        .key(claimed.instance.revoked());
    call.arg(&*claimed.owner).arg(claimed.term).arg(generation);
    for &shard in part {
        call.key(claimed.instance.records(shard))
            .key(claimed.instance.owners(shard));
        let entries = std::mem::take(&mut shards[shard.index()]);
        call.arg(entries.len());
        for entry in entries {
            call.arg(entry.hash.as_bytes())
                .arg(entry.record.encode())
                .arg(entry.owner.to_string());
        }
    }
    let reply: Reply = claimed.connection.run_script(ATTEMPT, &call).await?;
    let left_out = reply.done(ATTEMPT)?;
    let hashes: Option<Vec<KeyHash>> = left_out.iter().map(|field| hash(field)).collect();
    Ok(hashes.ok_or_else(|| StoreError::unexpected(ATTEMPT))?)
}

async fn end(claimed: &Claimed, generation: u64, records: usize) -> Result<Meta, WriteError> {
    let mut call = REBUILD_END.key(claimed.instance.meta());
    call.arg(&*claimed.owner)
        .arg(claimed.term)
        .arg(generation)
        .arg(records);
    let reply: Reply = claimed.connection.run_script(ATTEMPT, &call).await?;
    let fields = reply.done(ATTEMPT)?;
    Meta::decode(fields.first().map(Vec::as_slice))
        .and_then(|meta| meta)
        .ok_or_else(|| StoreError::unexpected(ATTEMPT).into())
}
