//! The body of a history's answer: `{total, limit, offset, data}`.

use http::HeaderValue;
use serde::Serialize;
use water_database::history::Slice;
use water_domain::Page;
use water_http::representation::CACHE_HISTORY;
use water_http::{Representation, json};

use crate::links;

/// A page, its place in the history and the total.
#[derive(Serialize)]
struct Envelope<'a, R> {
    total: u64,
    limit: u8,
    offset: u64,
    data: &'a [R],
}

/// Bytes reserved for a row, more than nearly all need, so that a page is rarely moved in memory while it grows.
const ROW_BYTES: usize = 256;

/// The answer to a request for `page` of the history at `path`; the queries of its links end with
/// `form`.
pub fn answer<R: Serialize>(
    path: &str,
    page: Page,
    slice: &Slice<R>,
    form: &str,
) -> Representation {
    let links = links::header(path, page, slice.total, form);
    let links = HeaderValue::try_from(links).expect("paths and digits are visible ASCII");
    Representation::new(body(page, slice.total, &slice.rows), CACHE_HISTORY).with_link(links)
}

/// Serialises the rows of `page` out of `total`.
fn body<R: Serialize>(page: Page, total: u64, data: &[R]) -> Vec<u8> {
    let Page { limit, offset } = page;
    let envelope = Envelope {
        total,
        limit,
        offset,
        data,
    };
    let mut json = Vec::with_capacity(ROW_BYTES * (data.len() + 1));
    json::append(&envelope, &mut json);
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(total: u64, rows: &[u8]) -> String {
        let page = Page {
            limit: 2,
            offset: 4,
        };
        String::from_utf8(body(page, total, rows)).unwrap()
    }

    #[test]
    fn the_envelope_shows_the_page_that_was_applied() {
        assert_eq!(
            text(6, &[7, 8]),
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
