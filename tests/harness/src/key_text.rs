//! Search for an API key's text: `wdk_`, 12 characters, `_`, 49 characters; as it is, or in base64, as
//! Kubernetes shows what a Secret holds.

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{Engine, alphabet};

/// Decoder of any part of a text, with the bits of a character whose others are missing.
const PARTS: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    NO_PAD.with_decode_allow_trailing_bits(true),
);

const PREFIX: &[u8] = b"wdk_";
const ID_LENGTH: usize = 12;
const SECRET_LENGTH: usize = 49;
const LENGTH: usize = PREFIX.len() + ID_LENGTH + 1 + SECRET_LENGTH;

/// Returns the first API key in a text or a dump, cut to its public part.
pub fn find_key_text(searched: impl AsRef<[u8]>) -> Option<String> {
    let searched = searched.as_ref();
    plain(searched).or_else(|| encoded(searched))
}

fn plain(searched: &[u8]) -> Option<String> {
    let mut windows = searched.windows(LENGTH);
    let key = windows.find(|window| is_key(window))?;
    let public = &key[..PREFIX.len() + ID_LENGTH];
    Some(String::from_utf8_lossy(public).into_owned())
}

fn encoded(searched: &[u8]) -> Option<String> {
    let is_other = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"+/".contains(byte);
    let words = searched.split(is_other);
    let mut long = words.filter(|word| word.len() >= LENGTH * 4 / 3);
    long.find_map(|word| {
        // Four characters are three bytes, and the first of them may be anywhere.
        (0..4).find_map(|start| {
            let part = &word[start..];
            // A single character is no byte.
            let end = part.len() - usize::from(part.len() % 4 == 1);
            plain(&PARTS.decode(&part[..end]).ok()?)
        })
    })
}

fn is_key(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(PREFIX) else {
        return false;
    };
    let (id, secret) = rest.split_at(ID_LENGTH);
    let letters = |part: &[u8]| part.iter().all(u8::is_ascii_alphanumeric);
    secret[0] == b'_' && letters(id) && letters(&secret[1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> String {
        format!("wdk_a1B2c3D4e5F6_{}", "x".repeat(SECRET_LENGTH))
    }

    #[test]
    fn a_planted_key_is_found_and_only_its_public_part_shown() {
        let text = format!("level=info wdk_ key={} done", key());
        assert_eq!(find_key_text(&text).as_deref(), Some("wdk_a1B2c3D4e5F6"));
        assert!(find_key_text(key()).is_some());
    }

    #[test]
    fn a_key_is_found_between_any_bytes() {
        let dump = [b"\xff\x00wdk_", key().as_bytes(), b"\xfe"].concat();
        assert!(find_key_text(dump).is_some());
    }

    #[test]
    fn a_key_is_found_in_base64_wherever_it_begins() {
        for before in ["", "a", "ab", "abc"] {
            let text = PARTS.encode(format!("{before}{}\n", key()));
            assert!(find_key_text(format!("{{\"api-key\":\"{text}\"}}")).is_some());
            assert!(find_key_text(format!("x{text}")).is_some());
        }
    }

    #[test]
    fn a_keys_name_or_hash_is_no_key() {
        assert_eq!(
            find_key_text("wdk_a1B2c3D4e5F6 wdk_a1B2c3D4e5F6_short"),
            None
        );
        assert_eq!(find_key_text("0".repeat(64)), None);
    }
}
