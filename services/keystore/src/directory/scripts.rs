//! The directory's Lua scripts and the readers of their replies. Each script begins with its KEYS, ARGV and reply; all
//! keys of a script share one hash tag and are named, so that a moving slot refuses a script before its first write.

use std::sync::LazyLock;

use redis::Script;

use super::WriteError;
use crate::failure::StoreError;
use water_domain::{KeyHash, Timestamp};

/// A script behind the functions that it uses.
macro_rules! script {
    ($name:ident, $($file:literal),+) => {
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(concat!(include_str!("fence.lua"), $(include_str!($file)),+))
        });
    };
}

script!(CLAIM, "claim.lua");
script!(DOUBT, "doubt.lua");
script!(DECLARE, "tombstone.lua", "held.lua", "declare.lua");
script!(
    OWNER_SNAPSHOT,
    "tombstone.lua",
    "held.lua",
    "owner_snapshot.lua"
);
script!(PLANS, "replace.lua", "plans.lua");
script!(REBUILD_BEGIN, "replace.lua", "rebuild_begin.lua");
script!(
    REBUILD_SHARDS,
    "tombstone.lua",
    "replace.lua",
    "rebuild_shards.lua"
);
script!(REBUILD_HELD, "replace.lua", "rebuild_held.lua");
script!(REBUILD_END, "rebuild_end.lua");
script!(FORGET, "tombstone.lua", "forget.lua");
script!(LEASES, "leases.lua");

/// The gate's only script of the directory; its user may not run what the others need.
pub(super) static LEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lease.lua")));

/// A reply: a word, then fields.
pub(super) type Reply = Vec<Vec<u8>>;

/// The fields behind `done`, or the refusal.
pub(super) fn done(reply: Reply, attempt: &'static str) -> Result<Vec<Vec<u8>>, WriteError> {
    let mut fields = reply.into_iter();
    let word = fields.next().unwrap_or_default();
    let fields: Vec<Vec<u8>> = fields.collect();
    if word == b"done" {
        return Ok(fields);
    }
    let refusal = refusal(&word, &fields);
    Err(refusal.unwrap_or_else(|| StoreError::unexpected(attempt).into()))
}

/// The hashes that the script must be given too, if that is what it asks for.
pub(super) fn more(reply: &Reply) -> Option<Vec<KeyHash>> {
    let (word, hashes) = reply.split_first()?;
    if word != b"more" {
        return None;
    }
    hashes.iter().map(|field| hash(field)).collect()
}

fn refusal(word: &[u8], fields: &[Vec<u8>]) -> Option<WriteError> {
    let first = fields.first();
    Some(match word {
        b"wiped" => WriteError::Wiped,
        b"unverified" => WriteError::Unverified,
        b"interrupted" => WriteError::Interrupted,
        b"went back" => WriteError::WentBack,
        b"gone" => WriteError::OwnerGone,
        b"outdated" => WriteError::Outdated {
            number: number(first?)?,
        },
        b"fenced" => WriteError::Fenced {
            stored: number(first?)?,
        },
        b"schema" => WriteError::Schema {
            stored: number(first?)?,
        },
        b"owned" => WriteError::Owned {
            uid: String::from_utf8_lossy(first?).into_owned(),
        },
        _ => return None,
    })
}

/// A number that a script has printed.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// A moment that a script has printed, in ms.
pub(super) fn moment(field: &[u8]) -> Option<Timestamp> {
    Timestamp::from_millis(i64::try_from(number(field)?).ok()?)
}

/// A hash in its form in the directory: its 32 bytes.
pub(super) fn hash(field: &[u8]) -> Option<KeyHash> {
    field.try_into().ok().map(KeyHash::from_bytes)
}
