//! Follows the feed: one round reads the changes since the last one, and `meta`.

use redis::cmd;
use redis::streams::{StreamId, StreamReadReply};

use super::Directory;
use super::meta::{Meta, Observation, SCHEMA};
use super::plans;
use super::scripts::{hash, number};
use super::snapshot::{Event, Snapshot};
use crate::failure::StoreError;

/// Entry of the feed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FeedEntry {
    pub(super) id: String,
    pub(super) seq: u64,
    pub(super) event: Event,
}

/// Result of one read of the feed. `seen` was read first, so that entries reach its `seq`.
pub(super) struct FeedRead {
    pub(super) seen: Observation,
    pub(super) entries: Vec<FeedEntry>,
}

/// Reason for which a copy cannot be continued, or a load is not used. The copy that is there stays.
#[derive(Debug, thiserror::Error)]
pub(super) enum FeedFailure {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the key directory has no readable meta: Redis lost its data")]
    Missing,
    #[error("the key directory has schema {stored}, and this version reads {SCHEMA}")]
    Schema { stored: u64 },
    #[error("the key directory is not complete: it is being rebuilt")]
    Incomplete,
    #[error("the operator has not verified the key directory since Redis restarted or failed over")]
    Unverified,
    #[error("the key directory was rebuilt")]
    Rebuilt,
    #[error("the feed goes from change {from} to {to}")]
    Gap { from: u64, to: u64 },
    #[error("the feed ends at change {feed}, the key directory at {meta}")]
    Behind { feed: u64, meta: u64 },
    #[error("the key directory has {stored} records where its meta counts {counted}")]
    Count { stored: u64, counted: u64 },
    #[error("the feed has an entry that this version cannot read")]
    Unreadable,
}

/// Time for which Redis holds a round open when nothing happens; also the time between lease renewals.
const BLOCK_MILLIS: usize = 1000;

/// Reads the entries after `after`. `wait`: waits up to one second for the first. Two questions, since both keys may be
/// on different servers while their slot moves, and the second may be held open only once the first is answered.
pub(super) async fn round(
    directory: &Directory,
    after: &str,
    wait: bool,
) -> Result<FeedRead, FeedFailure> {
    let attempt = "follow the feed";
    let seen = directory.observe_to(attempt).await?;
    let mut command = cmd("XREAD");
    if wait {
        command.arg("BLOCK").arg(BLOCK_MILLIS);
    }
    command
        .arg("STREAMS")
        .arg(directory.instance.feed())
        .arg(after);
    let reply: Option<StreamReadReply> = directory.connection.run(attempt, &command).await?;
    let ids = reply
        .into_iter()
        .flat_map(|reply| reply.keys)
        .flat_map(|key| key.ids);
    let entries: Option<Vec<FeedEntry>> = ids.map(read_entry).collect();
    Ok(FeedRead {
        seen,
        entries: entries.ok_or(FeedFailure::Unreadable)?,
    })
}

fn read_entry(mut entry: StreamId) -> Option<FeedEntry> {
    let mut field =
        |name| -> Option<Vec<u8>> { redis::from_redis_value(entry.map.remove(name)?).ok() };
    let (seq, op, name, value) = (field("seq")?, field("op")?, field("name")?, field("value")?);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
    let event = match &op[..] {
        b"put" => Event::Put(hash(&name)?, value),
        b"delete" => Event::Delete(hash(&name)?),
        b"plan" => Event::Plan(plans::decode(&text(name)?, &text(value)?)?),
        b"unplan" => Event::PlanGone(text(name)?.parse().ok()?),
        _ => return None,
    };
    Some(FeedEntry {
        id: entry.id,
        seq: number(&seq)?,
        event,
    })
}

/// The directory's meta, if a gate may use what it describes.
pub(super) fn usable(seen: &Observation) -> Result<&Meta, FeedFailure> {
    let meta = seen.meta.as_ref().ok_or(FeedFailure::Missing)?;
    if meta.schema != SCHEMA {
        // Its records may be unreadable here: the keys that this gate knows remain valid.
        Err(FeedFailure::Schema {
            stored: meta.schema,
        })
    } else if !meta.complete {
        Err(FeedFailure::Incomplete)
    } else if seen.verified().is_none() {
        Err(FeedFailure::Unverified)
    } else {
        Ok(meta)
    }
}

/// Returns `snapshot` with the round's changes, or the reason for which it cannot be continued. `None`: nothing
/// happened.
pub(super) fn follow(
    snapshot: &Snapshot,
    round: FeedRead,
) -> Result<Option<Snapshot>, FeedFailure> {
    let meta = usable(&round.seen)?;
    if meta.generation != snapshot.generation {
        return Err(FeedFailure::Rebuilt);
    }
    if meta.seq < snapshot.seq {
        return Err(FeedFailure::Gap {
            from: snapshot.seq,
            to: meta.seq,
        });
    }
    let next = extend(snapshot, round.entries)?;
    let reached = next.as_ref().unwrap_or(snapshot).seq;
    if reached < meta.seq {
        return Err(FeedFailure::Behind {
            feed: reached,
            meta: meta.seq,
        });
    }
    Ok(next)
}

/// `snapshot` with these changes, which must follow it without a gap or a step back.
pub(super) fn extend(
    snapshot: &Snapshot,
    entries: Vec<FeedEntry>,
) -> Result<Option<Snapshot>, FeedFailure> {
    if entries.is_empty() {
        return Ok(None);
    }
    let mut next = snapshot.clone();
    for entry in entries {
        if entry.seq != next.seq + 1 {
            return Err(FeedFailure::Gap {
                from: next.seq,
                to: entry.seq,
            });
        }
        next.apply(entry.seq, entry.event);
    }
    Ok(Some(next))
}

#[cfg(test)]
mod tests;
