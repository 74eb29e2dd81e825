//! Everything in the directory at once: what a rebuild writes, and what is read back to compare.

use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt, stream};
use redis::{cmd, pipe};
use water_domain::key::Shard;
use water_domain::{KeyHash, Plan};

use super::declaration::Origin;
use super::meta::Counts;
use super::{BATCHES_IN_FLIGHT, SHARDS_PER_BATCH};
use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;
use crate::owner::Owner;
use crate::record::{Record, UndecodableRecord};

/// All that a directory shall hold.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Every key to be published, in any order.
    pub entries: Vec<Entry>,
    /// Every plan that a gate may meet.
    pub plans: Vec<Plan>,
}

/// A key to be published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The key's hash.
    pub hash: KeyHash,
    /// What the gates shall know of it.
    pub record: Record,
    /// The ApiKey that declares it.
    pub owner: Owner,
    /// Where the key comes from: decides which tombstones bar it.
    pub origin: Origin,
}

/// What stands in the directory under one hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The record, or that it cannot be decoded.
    pub record: Result<Record, UndecodableRecord>,
    /// `None`: missing or unreadable.
    pub owner: Option<Owner>,
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) async fn read_stored(
    connection: &Connection,
    instance: &Instance,
) -> Result<HashMap<KeyHash, Stored>, StoreError> {
    let mut stored = HashMap::new();
    let mut batches = stream::iter(batches())
        .map(|shards| read_batch(connection, instance, shards))
        .buffered(BATCHES_IN_FLIGHT);
    while let Some((records, owners)) = batches.try_next().await? {
        let mut owners: HashMap<Vec<u8>, Vec<u8>> = owners.into_iter().collect();
        for (field, packed) in records {
            let owner = owners
                .remove(&field)
                .and_then(|text| String::from_utf8(text).ok());
            // A field that is no hash was not written by an operator; the count gives it away.
            let Ok(hash) = field.try_into().map(KeyHash::from_bytes) else {
                continue;
            };
            let found = Stored {
                record: Record::decode(&packed),
                owner: owner.as_deref().and_then(Owner::decode),
            };
            stored.insert(hash, found);
        }
    }
    Ok(stored)
}

async fn read_batch(
    connection: &Connection,
    instance: &Instance,
    shards: Vec<Shard>,
) -> Result<(Fields, Fields), StoreError> {
    let mut commands = pipe();
    for &shard in &shards {
        commands.cmd("HGETALL").arg(instance.records(shard));
    }
    for &shard in &shards {
        commands.cmd("HGETALL").arg(instance.owners(shard));
    }
    let mut replies: Vec<Fields> = connection
        .run_all("read all key records", &commands)
        .await?;
    let owners = replies.split_off(shards.len());
    Ok((replies.concat(), owners.concat()))
}

pub(super) async fn count(
    connection: &Connection,
    instance: &Instance,
) -> Result<Counts, StoreError> {
    let attempt = "count all key records";
    let lengths = stream::iter(batches()).map(|shards| async move {
        let mut commands = pipe();
        for shard in shards {
            commands.cmd("HLEN").arg(instance.records(shard));
            commands.cmd("HLEN").arg(instance.owners(shard));
            commands.cmd("HLEN").arg(instance.held(shard));
        }
        connection.run_all(attempt, &commands).await
    });
    let mut lengths = lengths.buffered(BATCHES_IN_FLIGHT);
    let mut counts = Counts::default();
    while let Some(lengths) = lengths.try_next().await? {
        let lengths: Vec<u64> = lengths;
        for shard in lengths.chunks_exact(3) {
            counts.records += shard[0];
            counts.owners += shard[1];
            counts.held += shard[2];
        }
    }
    let command = cmd("HLEN").arg(instance.revoked()).to_owned();
    counts.revoked = connection.run(attempt, &command).await?;
    Ok(counts)
}

/// All shards, in portions for one pipeline each.
pub(super) fn batches() -> impl Iterator<Item = Vec<Shard>> {
    let mut shards = Shard::all();
    std::iter::from_fn(move || {
        let batch: Vec<Shard> = shards.by_ref().take(SHARDS_PER_BATCH).collect();
        (!batch.is_empty()).then_some(batch)
    })
}
