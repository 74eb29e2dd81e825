//! Form of an API key: how it is made, hashed and kept out of sight.
//!
//! A generated key is `wdk_` + key id (12 base62) + `_` + secret (43 base62, 256 bits) + checksum (6
//! base62, CRC-32 of all before it). A key that is brought along by its hash may be any RFC 6750
//! `b64token` of 32 to 128 characters. Only the SHA-256 of a whole key is kept anywhere.

mod base62;
mod hash;

use std::borrow::Cow;
use std::fmt;

pub use hash::{InvalidKeyHash, KeyHash, Shard};

use crate::text::validated_text;

const ID_LENGTH: usize = 12;
/// Most keys that are issued for an ApiKey within ten minutes because its Secret was deleted or edited.
pub const REISSUES: usize = 3;

/// Most keys of an ApiKey that are announced and not in force. Each is left by a leader that stopped between the
/// announcement and the Secret.
pub const CANDIDATES: usize = 8;

/// 62^43 > 2^256: the shortest base62 text for 256 bits.
const SECRET_LENGTH: usize = 43;
/// 62^6 > 2^32.
const CHECKSUM_LENGTH: usize = 6;
/// A brought key below this length could be guessed.
const MIN_LENGTH: usize = 32;
/// Bounds the work that an unauthenticated request can ask for.
const MAX_LENGTH: usize = 128;

/// Random bytes that a generated key is made of: 16 for the key id, 32 for the secret.
pub type KeyRandomness = [u8; 48];

validated_text!(
    /// Beginning of a generated key, by which secret scanners recognise it.
    KeyPrefix,
    InvalidKeyPrefix,
    "key prefix",
    is_prefix,
    "a key prefix is 2 to 12 lower-case letters or digits, and begins with a letter",
    "^[a-z][a-z0-9]{1,11}$",
    12
);

impl Default for KeyPrefix {
    /// Returns `wdk`, for water data key.
    fn default() -> Self {
        Self("wdk".into())
    }
}

impl KeyPrefix {
    /// Whether a text contains the shape of a generated key: prefix, 12 and 49 characters of base62, for
    /// which secret scanners search. The checksum is not checked: a key with a slip of the pen shows most
    /// of its secret too.
    pub fn is_in(&self, text: &str) -> bool {
        let mut starts = text.match_indices(self.as_str());
        starts.any(|(start, prefix)| {
            let rest = &text.as_bytes()[start + prefix.len()..];
            let run = |from: usize, length: usize| {
                let run = rest.get(from..from + length);
                run.is_some_and(|run| run.iter().all(u8::is_ascii_alphanumeric))
            };
            let secret = SECRET_LENGTH + CHECKSUM_LENGTH;
            rest.first() == Some(&b'_')
                && run(1, ID_LENGTH)
                && rest.get(1 + ID_LENGTH) == Some(&b'_')
                && run(2 + ID_LENGTH, secret)
        })
    }
}

validated_text!(
    /// The public part of a key: it names the key in logs and in status.
    KeyId,
    InvalidKeyId,
    "key id",
    is_key_id,
    "a key id is 12 letters or digits",
    "^[0-9A-Za-z]{12}$",
    12
);

fn is_prefix(text: &str) -> bool {
    (2..=KeyPrefix::MAX_LENGTH).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

fn is_key_id(text: &str) -> bool {
    text.len() == ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A key's text: borrowed from a request, or just generated. It cannot be printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainKey<'a> {
    text: Cow<'a, str>,
    generated: bool,
}

/// Text that cannot be a key. The fault is not said: an answer would help only a guesser.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this is not an API key: wrong length, characters or checksum")]
pub struct MalformedKey;

impl<'a> PlainKey<'a> {
    /// Makes a key from random bytes, which the caller takes from the system's secure source.
    pub fn generate(prefix: &KeyPrefix, random: &KeyRandomness) -> PlainKey<'static> {
        let (mut id, mut secret) = ([0; 16], [0; 32]);
        id.copy_from_slice(&random[..16]);
        secret.copy_from_slice(&random[16..]);
        let id: [u8; ID_LENGTH] = base62::digits(id);
        let secret: [u8; SECRET_LENGTH] = base62::digits(secret);
        let mut text = format!("{prefix}_");
        text.extend(id.map(char::from));
        text.push('_');
        text.extend(secret.map(char::from));
        text.extend(checksum(&text).map(char::from));
        PlainKey {
            text: text.into(),
            generated: true,
        }
    }

    /// Reads a client's text. Costs no allocation, and no hash where the checksum is wrong.
    pub fn parse(presented: &'a [u8], prefix: &KeyPrefix) -> Result<Self, MalformedKey> {
        let text = std::str::from_utf8(presented).map_err(|_| MalformedKey)?;
        if !(MIN_LENGTH..=MAX_LENGTH).contains(&text.len()) || !is_b64token(text) {
            return Err(MalformedKey);
        }
        let generated = has_generated_shape(text, prefix);
        if generated && !has_right_checksum(text) {
            return Err(MalformedKey);
        }
        Ok(Self {
            text: text.into(),
            generated,
        })
    }

    /// Returns the SHA-256 of the whole key: the only form in which it is stored and looked up.
    pub fn hash(&self) -> KeyHash {
        KeyHash::digest(self.text.as_bytes())
    }

    /// Whether it has the shape of a key that the operator makes, with the right checksum.
    pub fn is_generated(&self) -> bool {
        self.generated
    }

    /// Returns the key's public name: part of a generated key, part of a brought key's hash.
    pub fn key_id(&self) -> KeyId {
        if !self.generated {
            return self.hash().key_id();
        }
        let start = self.text.len() - CHECKSUM_LENGTH - SECRET_LENGTH - 1 - ID_LENGTH;
        KeyId(self.text[start..start + ID_LENGTH].into())
    }

    /// Returns the text itself, for the one place that hands it to its owner.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for PlainKey<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PlainKey")
    }
}

/// Checks for `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="` (RFC 6750 §2.1).
fn is_b64token(text: &str) -> bool {
    let allowed = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
    };
    let body = text.trim_end_matches('=');
    !body.is_empty() && body.bytes().all(allowed)
}

fn has_generated_shape(text: &str, prefix: &KeyPrefix) -> bool {
    let parts = text
        .strip_prefix(prefix.as_str())
        .and_then(|rest| rest.strip_prefix('_'))
        .and_then(|rest| rest.split_at_checked(ID_LENGTH));
    let Some((id, rest)) = parts else {
        return false;
    };
    let secret = rest.strip_prefix('_').unwrap_or_default().as_bytes();
    is_key_id(id)
        && secret.len() == SECRET_LENGTH + CHECKSUM_LENGTH
        && secret.iter().all(u8::is_ascii_alphanumeric)
}

fn has_right_checksum(text: &str) -> bool {
    let (body, told) = text.split_at(text.len() - CHECKSUM_LENGTH);
    checksum(body) == told.as_bytes()
}

/// Returns the CRC-32 of the text before the checksum.
fn checksum(body: &str) -> [u8; CHECKSUM_LENGTH] {
    base62::digits(crc32fast::hash(body.as_bytes()).to_be_bytes())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
