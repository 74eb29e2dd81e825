//! Reads all shards, several in one pipeline.

use futures::{Stream, StreamExt, stream};
use redis::{FromRedisValue, pipe};
use water_domain::key::Shard;

use crate::connection::Connection;
use crate::failure::StoreError;

const SHARDS_PER_BATCH: usize = 16;
/// Pipelines under way at once: measured, more gains nothing.
const BATCHES_IN_FLIGHT: usize = 8;

/// Replies to `command` for each of the `keys` of each shard, in order.
pub(super) fn read<const N: usize, T: FromRedisValue>(
    connection: &Connection,
    attempt: &'static str,
    command: &'static str,
    keys: impl Fn(Shard) -> [String; N],
) -> impl Stream<Item = Result<Vec<T>, StoreError>> {
    let mut shards = Shard::all();
    let batches = std::iter::from_fn(move || {
        let batch: Vec<Shard> = shards.by_ref().take(SHARDS_PER_BATCH).collect();
        (!batch.is_empty()).then_some(batch)
    });
    let replies = stream::iter(batches).map(move |batch| {
        let mut commands = pipe();
        for key in batch.into_iter().flat_map(&keys) {
            commands.cmd(command).arg(key);
        }
        async move { connection.run_all(attempt, &commands).await }
    });
    replies.buffered(BATCHES_IN_FLIGHT)
}
