//! A value of a file as a problem shows it: short, and on one line, whatever it holds.

/// A value as a problem shows it: short, and on one line.
pub fn quoted(text: &str) -> String {
    let plain = |character: char| !character.is_control() && !character.is_whitespace();
    match text.chars().count() {
        1..=SHOWN if text.chars().all(plain) => text.to_owned(),
        _ => format!("\"{}\"", shortened(text)),
    }
}

/// How many characters of a value a problem shows.
const SHOWN: usize = 40;

/// The begin of a text, on one line.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}
