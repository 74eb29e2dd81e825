//! The form in which a key is kept: its SHA-256, and the directory's shard that it falls into.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::KeyId;

/// SHA-256 of a whole key. No slow hash: a key has 256 random bits, and a slow hash on each
/// request would be an invitation to overload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; 32]);

/// Text that is no key hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a key hash is the SHA-256 of the key as 64 lower-case hexadecimal digits")]
pub struct InvalidKeyHash;

impl KeyHash {
    pub(super) fn digest(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Takes a hash that a store gave back.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the shard of the key directory that holds this hash.
    pub fn shard(&self) -> Shard {
        Shard(u16::from(self.0[0]) << 4 | u16::from(self.0[1] >> 4))
    }

    /// Returns the key id of a key that was brought along by its hash: its first 12 hexadecimal digits.
    pub fn key_id(&self) -> KeyId {
        KeyId(hex::encode(&self.0[..6]).into())
    }
}

impl FromStr for KeyHash {
    type Err = InvalidKeyHash;

    fn from_str(text: &str) -> Result<Self, InvalidKeyHash> {
        let mut bytes = [0; 32];
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(InvalidKeyHash);
        }
        hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidKeyHash)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Part of the key directory: one of 4 096, by the hash's first three hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shard(u16);

impl Shard {
    /// Number of shards: 16^3.
    pub const COUNT: u16 = 4096;

    /// Returns the shards in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// Returns its number, from 0.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:03x}", self.0)
    }
}
