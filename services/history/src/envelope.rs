//! The body of a history's answer: `{total, limit, offset, data}` (specification §4.3).

use std::io::Write;

use http::HeaderValue;
use water_database::history::Slice;
use water_domain::Page;
use water_http::Representation;
use water_http::representation::CACHE_HISTORY;

use crate::links;

/// A record that can write itself, fields in the API's order.
pub trait Row {
    /// Appends the record as a JSON object.
    fn write(&self, json: &mut Vec<u8>);
}

/// More than nearly all rows need, so that a page is rarely moved in memory while it grows.
const ROW_BYTES: usize = 256;

/// The answer to a request for `page` of the history at `path`.
pub fn answer<R: Row>(path: &str, page: Page, slice: &Slice<R>) -> Representation {
    let answer = Representation::new(body(page, slice.total, &slice.rows), CACHE_HISTORY);
    match links::header(path, page, slice.total) {
        Some(links) => answer
            .with_link(HeaderValue::try_from(links).expect("a path and digits are visible ASCII")),
        None => answer,
    }
}

/// The rows of `page` out of `total`.
fn body<R: Row>(page: Page, total: u64, rows: &[R]) -> Vec<u8> {
    let Page { limit, offset } = page;
    let mut json = Vec::with_capacity(ROW_BYTES * (rows.len() + 1));
    write!(
        json,
        r#"{{"total":{total},"limit":{limit},"offset":{offset},"data":["#
    )
    .expect("writing to memory cannot fail");
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        row.write(&mut json);
    }
    json.extend_from_slice(b"]}");
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Digit(u8);

    impl Row for Digit {
        fn write(&self, json: &mut Vec<u8>) {
            json.push(self.0);
        }
    }

    fn text(total: u64, rows: &[Digit]) -> String {
        String::from_utf8(body(
            Page {
                limit: 2,
                offset: 4,
            },
            total,
            rows,
        ))
        .unwrap()
    }

    #[test]
    fn the_envelope_shows_the_page_that_was_applied() {
        assert_eq!(
            text(6, &[Digit(b'7'), Digit(b'8')]),
            r#"{"total":6,"limit":2,"offset":4,"data":[7,8]}"#
        );
    }

    #[test]
    fn a_page_without_rows_has_an_empty_list() {
        assert_eq!(
            text(3, &[]),
            r#"{"total":3,"limit":2,"offset":4,"data":[]}"#
        );
    }
}
