//! What a file is instead of UTF-8 text, by its bytes.

use std::str::Utf8Error;

/// What the first bytes say the file is, and how to save it.
pub fn foreign(first: &[u8]) -> Option<&'static str> {
    match first {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("the file is UTF-16: save it as UTF-8"),
        [b'P', b'K', 3, 4, ..] => Some(
            "the file is a spreadsheet's workbook (.xlsx, .ods) or another zip: save the sheet as CSV UTF-8",
        ),
        _ => None,
    }
}

/// The byte at which the UTF-8 of a table ends. Bytes from 0x80 on that stand alone are what
/// Windows-1252 writes accents with; it is not guessed, because a wrong guess changes names without
/// a sign.
pub fn not_utf8(bytes: &[u8], error: Utf8Error) -> String {
    let why = not_utf8_json(bytes, error);
    format!("{why}, or add --encoding windows-1252 if it is")
}

/// The same of JSON, which is UTF-8 by its standard.
pub fn not_utf8_json(bytes: &[u8], error: Utf8Error) -> String {
    let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
    format!("byte 0x{byte:02X} is not UTF-8 (is it Windows-1252?): save the file as UTF-8")
}
