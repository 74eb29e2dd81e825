//! The directory's Lua scripts and how their replies are read. KEYS, ARGV and reply of each stand
//! above it; all keys of a script share one hash tag and are declared.

use std::sync::LazyLock;

use redis::{FromRedisValue, ParsingError, Script, Value};

use super::WriteError;
use crate::failure::StoreError;
use water_domain::KeyHash;

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!(include_str!("fence.lua"), include_str!($file))));
    };
}

script!(CLAIM, "claim.lua");
script!(CHANGE, "change.lua");
script!(PLANS, "plans.lua");
script!(REBUILD_BEGIN, "rebuild_begin.lua");
script!(REBUILD_SHARDS, "rebuild_shards.lua");
script!(REBUILD_END, "rebuild_end.lua");
script!(FORGET, "forget.lua");
script!(LEASES, "leases.lua");

/// The gate's only script of the directory; its user may not run what the others need.
pub(super) static LEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lease.lua")));

/// A write's reply: a word, then fields.
pub(super) struct Reply(Vec<Vec<u8>>);

impl FromRedisValue for Reply {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        Vec::from_redis_value(value).map(Self)
    }
}

impl Reply {
    /// The fields behind `done`, or the refusal.
    pub(super) fn done(self, attempt: &'static str) -> Result<Vec<Vec<u8>>, WriteError> {
        let mut fields = self.0.into_iter();
        let word = fields.next().unwrap_or_default();
        let fields: Vec<Vec<u8>> = fields.collect();
        if word == b"done" {
            return Ok(fields);
        }
        let refusal = refusal(&word, &fields);
        Err(refusal.unwrap_or_else(|| StoreError::unexpected(attempt).into()))
    }
}

fn refusal(word: &[u8], fields: &[Vec<u8>]) -> Option<WriteError> {
    let first = fields.first();
    Some(match word {
        b"wiped" => WriteError::Wiped,
        b"unverified" => WriteError::Unverified,
        b"interrupted" => WriteError::Interrupted,
        b"fenced" => WriteError::Fenced {
            stored: number(first?)?,
        },
        b"schema" => WriteError::Schema {
            stored: number(first?)?,
        },
        b"owned" => WriteError::Owned {
            uid: String::from_utf8_lossy(first?).into_owned(),
        },
        b"revoked" => WriteError::Revoked(hash(first?)?),
        b"taken" => WriteError::Taken(hash(first?)?),
        _ => return None,
    })
}

/// A number that a script has printed.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// A hash as it stands in the directory: its 32 bytes.
pub(super) fn hash(field: &[u8]) -> Option<KeyHash> {
    field.try_into().ok().map(KeyHash::from_bytes)
}
