//! Loads the whole directory: notes the feed's end, reads `meta`, reads all shards, then follows the feed up to a
//! second reading of `meta`, with which the result must agree.

use futures::{TryStreamExt, stream};
use redis::{Value, cmd};
use water_domain::KeyHash;

use super::feed::{FeedFailure, extend, round, usable};
use super::scripts::hash;
use super::snapshot::{LoadedShard, Snapshot};
use super::{Directory, batches};
use crate::failure::StoreError;

const ATTEMPT: &str = "load the key directory";

/// A complete copy, and the feed's entry from which to continue.
pub(super) struct DirectoryCopy {
    pub(super) snapshot: Snapshot,
    pub(super) after: String,
}

pub(super) async fn load(directory: &Directory) -> Result<DirectoryCopy, FeedFailure> {
    let after = feed_end(directory).await?;
    // Everything up to this `seq` is in the shards that are read from here on.
    let start = round(directory, &after, false).await?.seen;
    let meta = usable(&start)?;
    let plans = directory.read_plans(ATTEMPT).await?.into_iter();
    let plans = plans
        .collect::<Option<_>>()
        .ok_or(FeedFailure::Unreadable)?;
    let shards = read_shards(directory).await?;
    let loaded = Snapshot::new(meta.generation, meta.seq, shards, plans);
    catch_up(directory, loaded, after).await
}

/// Applies what changed while the shards were read, and compares the count where both readings are at the same `seq`.
async fn catch_up(
    directory: &Directory,
    loaded: Snapshot,
    after: String,
) -> Result<DirectoryCopy, FeedFailure> {
    let mut caught_up = round(directory, &after, false).await?;
    let meta = usable(&caught_up.seen)?;
    if meta.generation != loaded.generation {
        return Err(FeedFailure::Rebuilt);
    }
    let after = caught_up
        .entries
        .last()
        .map_or(after, |entry| entry.id.clone());
    caught_up.entries.retain(|entry| entry.seq > loaded.seq);
    let later = caught_up
        .entries
        .partition_point(|entry| entry.seq <= meta.seq);
    let later = caught_up.entries.split_off(later);

    let snapshot = extend(&loaded, caught_up.entries)?.unwrap_or(loaded);
    if snapshot.seq != meta.seq {
        return Err(FeedFailure::Behind {
            feed: snapshot.seq,
            meta: meta.seq,
        });
    }
    let stored = snapshot.keys as u64;
    if stored != meta.counts.records {
        return Err(FeedFailure::Count {
            stored,
            counted: meta.counts.records,
        });
    }
    let snapshot = extend(&snapshot, later)?.unwrap_or(snapshot);
    Ok(DirectoryCopy { snapshot, after })
}

/// The id of the feed's last entry; `0-0` is before the first.
pub(super) async fn feed_end(directory: &Directory) -> Result<String, StoreError> {
    let mut command = cmd("XREVRANGE");
    command
        .arg(directory.instance.feed())
        .arg("+")
        .arg("-")
        .arg("COUNT")
        .arg(1);
    let last: redis::streams::StreamRangeReply =
        directory.connection.run(ATTEMPT, &command).await?;
    let id = last.ids.into_iter().next().map(|entry| entry.id);
    Ok(id.unwrap_or_else(|| "0-0".into()))
}

async fn read_shards(directory: &Directory) -> Result<Vec<LoadedShard>, StoreError> {
    let keys = |shard| [directory.instance.records(shard)];
    let batches = batches::read(&directory.connection, ATTEMPT, "HGETALL", keys);
    batches
        .map_ok(|replies| stream::iter(replies.into_iter().map(read_shard)))
        .try_flatten()
        .try_collect()
        .await
}

/// Moves a shard's fields out of the reply: copying them would double the time of a load.
fn read_shard(reply: Value) -> Result<LoadedShard, StoreError> {
    let unexpected = || StoreError::unexpected(ATTEMPT);
    let pairs = match reply {
        Value::Map(pairs) => pairs,
        Value::Array(flat) if flat.is_empty() => Vec::new(),
        _ => return Err(unexpected()),
    };
    let fields = pairs.into_iter().map(|pair| match pair {
        (Value::BulkString(field), Value::BulkString(packed)) => Some((hash(&field)?, packed)),
        _ => None,
    });
    let fields: Option<Vec<(KeyHash, Vec<u8>)>> = fields.collect();
    Ok(LoadedShard::new(fields.ok_or_else(unexpected)?))
}
