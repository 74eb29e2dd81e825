//! Sealing of texts that leave this process and come back unread and unchanged (AES-256-GCM, RFC 5116).

use std::fmt;
use std::str::FromStr;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

/// Bytes of a key.
const LENGTH: usize = 32;

/// Random bytes of one sealing: no two under the same key are the same.
pub type SealRandomness = [u8; NONCE_LEN];

/// A key that seals and opens. Cannot be printed.
#[derive(Clone)]
pub struct SealKey(LessSafeKey);

/// Text that is no key; it is not repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a key that seals is 64 hexadecimal digits")]
pub struct InvalidSealKey;

impl SealKey {
    fn new(bytes: &[u8; LENGTH]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, bytes).expect("AES-256 has keys of 32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// Derives a key for one purpose from secret bytes that are used for others too (HKDF-SHA256, RFC
    /// 5869).
    pub fn derived(secret: &[u8], purpose: &str) -> Self {
        let parts = [purpose.as_bytes()];
        let secret = Salt::new(HKDF_SHA256, &[]).extract(secret);
        let derived = secret.expand(&parts, HKDF_SHA256);
        let mut bytes = [0; LENGTH];
        derived
            .and_then(|derived| derived.fill(&mut bytes))
            .expect("32 bytes are within what HKDF gives");
        Self::new(&bytes)
    }

    /// Seals a text for one place: it opens under the same `place` only.
    pub fn seal(&self, place: &str, text: &[u8], random: SealRandomness) -> Vec<u8> {
        let mut sealed = random.to_vec();
        let mut body = text.to_vec();
        self.0
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(random),
                Aad::from(place.as_bytes()),
                &mut body,
            )
            .expect("texts are far below AES-GCM's 64 GiB");
        sealed.append(&mut body);
        sealed
    }

    /// Opens a text that was sealed for this place with this key; none if it was not, or has changed since.
    pub fn open(&self, place: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (random, body) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut body = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(*random);
        let place = Aad::from(place.as_bytes());
        let opened = self.0.open_in_place(nonce, place, &mut body).ok()?.len();
        body.truncate(opened);
        Some(body)
    }
}

impl FromStr for SealKey {
    type Err = InvalidSealKey;

    fn from_str(text: &str) -> Result<Self, InvalidSealKey> {
        let mut bytes = [0; LENGTH];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidSealKey)?;
        Ok(Self::new(&bytes))
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SealKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: SealRandomness = [7; NONCE_LEN];

    #[test]
    fn what_is_sealed_opens_in_its_own_place_and_with_its_own_key_only() {
        let key = SealKey::derived(b"cookie", "session");
        let sealed = key.seal("here", b"a text", RANDOM);
        assert_eq!(key.open("here", &sealed).unwrap(), b"a text");
        assert_eq!(key.open("there", &sealed), None);
        let others = [
            SealKey::derived(b"another", "session"),
            SealKey::derived(b"cookie", "another"),
        ];
        for other in others {
            assert_eq!(other.open("here", &sealed), None);
        }
    }

    #[test]
    fn each_changed_or_missing_byte_is_noticed() {
        let key = SealKey::derived(b"cookie", "session");
        let sealed = key.seal("here", b"a text", RANDOM);
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert_eq!(key.open("here", &changed), None, "byte {index}");
            assert_eq!(key.open("here", &sealed[..index]), None, "{index} bytes");
        }
    }

    #[test]
    fn a_key_is_64_digits_and_is_not_printed() {
        let key: SealKey = "0f".repeat(32).parse().unwrap();
        assert_eq!(format!("{key:?}"), "SealKey");
        for bad in ["", "0f", &"0f".repeat(33), &"xy".repeat(32)] {
            assert_eq!(bad.parse::<SealKey>().unwrap_err(), InvalidSealKey);
        }
    }
}
