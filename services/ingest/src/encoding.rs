//! Files that are no UTF-8 text, recognised by their bytes.

use std::str::Utf8Error;

use encoding_rs::WINDOWS_1252;

const UTF_16: &str = "the file is UTF-16: save it as UTF-8";

/// First bytes of formats that are not read, each with the problem and its remedy.
const FOREIGN: [(&[u8], &str); 6] = [
    (&[0xff, 0xfe], UTF_16),
    (&[0xfe, 0xff], UTF_16),
    (
        b"PK\x03\x04",
        "the file is a spreadsheet's workbook (.xlsx, .ods) or another zip: save the sheet as CSV UTF-8",
    ),
    (
        &[0xd0, 0xcf, 0x11, 0xe0],
        "the file is a spreadsheet's workbook (.xls): save the sheet as CSV UTF-8",
    ),
    (
        &[0x28, 0xb5, 0x2f, 0xfd],
        "the file is packed with zstd: decompress it first, or pack it with gzip",
    ),
    // The letters alone may begin an id. The byte after them begins the header of the first page.
    (
        b"PAR1\x15",
        "the file is Parquet: export it as CSV UTF-8 or as NDJSON",
    ),
];

/// Names the format that the first bytes show, and the remedy. `--encoding windows-1252` may have decoded the bytes.
pub fn foreign(first: &[u8]) -> Option<&'static str> {
    let begins_with = |magic: &[u8]| {
        let (decoded, _) = WINDOWS_1252.decode_without_bom_handling(magic);
        first.starts_with(magic) || first.starts_with(decoded.as_bytes())
    };
    let found = FOREIGN.iter().find(|(magic, _)| begins_with(magic));
    found.map(|(_, why)| *why)
}

/// Problem of a text with U+FFFD, and the remedy.
pub const LOST_CHARACTER: &str =
    "has U+FFFD in the place of a lost character: export the file again as UTF-8";

/// Sign of a text that was read in a wrong encoding before it came into the file, and the remedy.
pub fn misread(text: &str) -> Option<&'static str> {
    if text.is_ascii() {
        return None;
    }
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return Some(LOST_CHARACTER);
    }
    is_utf8_as_windows_1252(text)
        .then_some("looks like UTF-8 that was read as Windows-1252: export the file again as UTF-8")
}

/// Whether a text has `Ã©` for `é`, `Â°` for `°`, `Å“` for `œ` or `â€™` for `’`. Other first bytes of UTF-8 are not tried:
/// French words end in É or È before such signs (`SOCIÉTÉ®`).
fn is_utf8_as_windows_1252(text: &str) -> bool {
    let (bytes, ..) = WINDOWS_1252.encode(text);
    let two = |bytes: &[u8]| matches!(bytes, [0xc2 | 0xc3 | 0xc5, 0x80..=0xbf]);
    let three = |bytes: &[u8]| matches!(bytes, [0xe2, 0x80..=0xbf, 0x80..=0xbf]);
    bytes.windows(2).any(two) || bytes.windows(3).any(three)
}

/// Reports the byte at which a table stops being UTF-8. Single bytes from 0x80 on are accents in Windows-1252, which is
/// not guessed: a wrong guess would change names without a sign.
pub fn not_utf8(bytes: &[u8], error: Utf8Error) -> String {
    let why = not_utf8_json(bytes, error);
    format!("{why}, or add --encoding windows-1252 if it is")
}

/// Reports the same of JSON, which is UTF-8 by its standard.
pub fn not_utf8_json(bytes: &[u8], error: Utf8Error) -> String {
    let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
    format!("byte 0x{byte:02X} is not UTF-8 (is it Windows-1252?): save the file as UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_format_is_named_even_after_it_was_decoded() {
        for (magic, why) in FOREIGN {
            let (decoded, _) = WINDOWS_1252.decode_without_bom_handling(magic);
            for bytes in [magic, decoded.as_bytes()] {
                assert_eq!(foreign(&[bytes, b"rest"].concat()), Some(why));
            }
        }
        assert_eq!(foreign(b"PAR1-7\n"), None);
    }

    #[test]
    fn text_in_a_wrong_encoding_is_recognised_and_french_is_not() {
        for text in [
            "SociÃ©tÃ© des eaux",
            "Ã\u{a0} Paris",
            "NÂ° 5",
            "lâ€™Eau",
            "CÅ“ur",
            "SantÃ‰",
            "Soci\u{fffd}t\u{fffd}",
        ] {
            assert!(misread(text).is_some(), "{text}");
        }
        for text in [
            "Société des eaux",
            "SOCIÉTÉ®",
            "«\u{a0}CAFÉ\u{a0}»",
            "N° 5 – l’Eau…",
            "Œuvre",
            "THÉÂTRE",
            "Łódź, Åre",
            "pâ…",
        ] {
            assert_eq!(misread(text), None, "{text}");
        }
    }
}
