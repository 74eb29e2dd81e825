//! Characters at which a reader may end a line.

/// Checks for a character at which Python's `str.splitlines` ends a line, which are the most of any reader: httpx reads
/// NDJSON with it, and programs split CSV with it before they parse.
pub fn is_line_end(character: char) -> bool {
    matches!(
        character,
        '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// The list of these characters.
#[cfg(test)]
pub(crate) const LINE_ENDS: [char; 10] = [
    '\n', '\u{b}', '\u{c}', '\r', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_character_ends_a_line() {
        let found = ('\0'..=char::MAX).filter(|character| is_line_end(*character));
        assert!(found.eq(LINE_ENDS));
    }
}
