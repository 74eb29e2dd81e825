//! A dataset as CSV (RFC 4180): CRLF, a header line, JSON's numbers and times as cells.

use water_http::csv::append;

/// A record as cells, under a header.
pub trait Row {
    /// The names of the cells: JSON's, in its order.
    const HEADER: &'static [&'static str];

    /// The cells as they are printed in JSON, without quotes.
    fn cells(&self) -> Vec<String>;
}

/// Writes the header, and one line a record.
pub fn document<R: Row>(records: &[R]) -> Vec<u8> {
    let mut csv = Vec::new();
    append(R::HEADER, &mut csv);
    for record in records {
        append(record.cells(), &mut csv);
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair(&'static str, &'static str);

    impl Row for Pair {
        const HEADER: &'static [&'static str] = &["left", "right"];

        fn cells(&self) -> Vec<String> {
            vec![self.0.to_owned(), self.1.to_owned()]
        }
    }

    #[test]
    fn cells_are_quoted_only_where_they_must_be_and_lines_end_with_crlf() {
        let records = [Pair("a b", "1.5"), Pair("a,\"b\"", "Côte-d'Or")];
        assert_eq!(
            String::from_utf8(document(&records)).unwrap(),
            "left,right\r\na b,1.5\r\n\"a,\"\"b\"\"\",Côte-d'Or\r\n"
        );
    }

    #[test]
    fn without_records_there_is_the_header() {
        assert_eq!(document::<Pair>(&[]), b"left,right\r\n");
    }
}
