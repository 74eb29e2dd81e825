//! Values of a file in the text of a problem: short, and on one line, whatever they hold.

/// A value as a problem shows it: short, on one line, and in quotes unless it is a plain word.
pub fn quoted(text: &str) -> String {
    let plain = |character: char| !character.is_control() && !character.is_whitespace();
    match text.chars().count() {
        1..=SHOWN if text.chars().all(plain) => text.to_owned(),
        _ => format!("\"{}\"", shortened(text)),
    }
}

/// Number of characters of a value that a problem shows.
const SHOWN: usize = 40;

/// The beginning of a text, on one line.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}
