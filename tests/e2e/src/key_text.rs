//! Whether a text holds an API key's text: `wdk_`, 12 characters, `_`, 49 characters.

/// The first API key in `text`, cut to its public part.
pub fn find_key_text(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(start) = rest.find("wdk_") {
        let candidate = &rest[start..];
        if is_key(candidate.as_bytes()) {
            return Some(&candidate[.."wdk_".len() + 12]);
        }
        rest = &candidate["wdk_".len()..];
    }
    None
}

fn is_key(text: &[u8]) -> bool {
    let (id, secret) = (text.get(4..16), text.get(17..66));
    let all_letters =
        |part: Option<&[u8]>| part.is_some_and(|part| part.iter().all(u8::is_ascii_alphanumeric));
    all_letters(id) && text.get(16) == Some(&b'_') && all_letters(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_key_is_found_and_only_its_public_part_shown() {
        let text = format!(
            "level=info wdk_ key=wdk_{}_{} done",
            "a1B2c3D4e5F6",
            "x".repeat(49)
        );
        assert_eq!(find_key_text(&text), Some("wdk_a1B2c3D4e5F6"));
    }

    #[test]
    fn a_keys_name_or_hash_is_no_key() {
        assert_eq!(
            find_key_text("wdk_a1B2c3D4e5F6 wdk_a1B2c3D4e5F6_short"),
            None
        );
        assert_eq!(find_key_text(&"0".repeat(64)), None);
    }
}
