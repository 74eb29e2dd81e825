//! Whether something holds an API key's text: `wdk_`, 12 characters, `_`, 49 characters.

const PREFIX: &[u8] = b"wdk_";
const ID_LENGTH: usize = 12;
const SECRET_LENGTH: usize = 49;
const LENGTH: usize = PREFIX.len() + ID_LENGTH + 1 + SECRET_LENGTH;

/// The first API key in a text or a dump, cut to its public part.
pub fn find_key_text(searched: impl AsRef<[u8]>) -> Option<String> {
    let mut windows = searched.as_ref().windows(LENGTH);
    let key = windows.find(|window| is_key(window))?;
    let public = &key[..PREFIX.len() + ID_LENGTH];
    Some(String::from_utf8_lossy(public).into_owned())
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
    fn a_keys_name_or_hash_is_no_key() {
        assert_eq!(
            find_key_text("wdk_a1B2c3D4e5F6 wdk_a1B2c3D4e5F6_short"),
            None
        );
        assert_eq!(find_key_text("0".repeat(64)), None);
    }
}
