//! Bodies in CSV (RFC 4180), whose rows stay whole for readers that split lines before they parse.
//!
//! The crate `csv` reads these in tests. It does not write them: its set of characters for which a cell is quoted is fixed.

use water_runtime::line_end::is_line_end;

/// Appends a row: cells with commas between them, and CRLF.
pub fn append<C: AsRef<str>>(cells: impl IntoIterator<Item = C>, csv: &mut Vec<u8>) {
    for (place, cell) in cells.into_iter().enumerate() {
        if place > 0 {
            csv.push(b',');
        }
        let cell = cell.as_ref();
        if cell.contains(is_special) {
            csv.push(b'"');
            csv.extend_from_slice(cell.replace('"', "\"\"").as_bytes());
            csv.push(b'"');
        } else {
            csv.extend_from_slice(cell.as_bytes());
        }
    }
    csv.extend_from_slice(b"\r\n");
}

/// Checks for a character for which a cell is quoted. More than RFC 4180 asks: a reader that splits lines first joins
/// a row whose quotes are open, and no other.
fn is_special(character: char) -> bool {
    matches!(character, ',' | '"') || is_line_end(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> String {
        let mut csv = Vec::new();
        append(cells, &mut csv);
        String::from_utf8(csv).unwrap()
    }

    #[test]
    fn cells_are_quoted_only_where_they_must_be() {
        assert_eq!(row(&["id", "", "Côte-d'Or 1.5"]), "id,,Côte-d'Or 1.5\r\n");
        assert_eq!(row(&["a,b", "\"c\""]), "\"a,b\",\"\"\"c\"\"\"\r\n");
    }

    #[test]
    fn cells_with_a_line_end_of_any_kind_are_quoted() {
        for character in ('\0'..=char::MAX).filter(|character| is_line_end(*character)) {
            let cell = format!("a{character}b");
            let expected = format!("1,\"a{character}b\",é\r\n");
            assert_eq!(row(&["1", &cell, "é"]), expected);
        }
    }
}
