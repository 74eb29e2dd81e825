//! The `Link` header of a history page (RFC 8288): `first`, `prev`, `next` and `last`, if those pages exist, and the
//! sources; as references relative to the service's origin.

use std::fmt::Write;

use water_domain::{Format, Page};
use water_http::format::PARAMETER;
use water_http::representation::DESCRIBED_BY;
use water_http::{Problem, Query};

/// Returns the end of the queries of links to other pages: the form, if the request's query names it, because the
/// client then cannot name it in another way.
pub fn form(query: &Query<'_>, format: Format) -> Result<&'static str, Problem> {
    let is_named = query.get(PARAMETER)?.is_some();
    Ok(match format {
        _ if !is_named => "",
        Format::Json => "&format=json",
        Format::Csv => "&format=csv",
        Format::NdJson => "&format=ndjson",
    })
}

/// Builds the header's value. A history without rows has no other page.
///
/// Pages that began at an odd offset stay on that grid: following `next` to its end arrives at `last`. `form` ends
/// the queries.
pub fn header(path: &str, page: Page, total: u64, form: &str) -> String {
    if total == 0 {
        return DESCRIBED_BY.to_owned();
    }
    let limit = u64::from(page.limit);
    let shift = page.offset % limit;
    let last = if total > shift {
        shift + (total - 1 - shift) / limit * limit
    } else {
        0
    };
    let prev = (page.offset > 0).then(|| page.offset.saturating_sub(limit).min(last));
    let next = page.offset.checked_add(limit).filter(|&next| next < total);

    let mut value = String::new();
    for (relation, offset) in [
        ("first", Some(0)),
        ("prev", prev),
        ("next", next),
        ("last", Some(last)),
    ] {
        let Some(offset) = offset else { continue };
        write!(
            value,
            "<{path}?limit={limit}&offset={offset}{form}>; rel=\"{relation}\", "
        )
        .expect("writing to memory cannot fail");
    }
    value + DESCRIBED_BY
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset of each relation that the header names.
    fn offsets(limit: u8, offset: u64, total: u64) -> Vec<(String, u64)> {
        let header = header("/h", Page { limit, offset }, total, "");
        let header = header.strip_suffix(DESCRIBED_BY).unwrap();
        let link = |link: &str| {
            let (target, relation) = link.split_once(">; rel=").unwrap();
            let offset = target
                .strip_prefix(&format!("</h?limit={limit}&offset="))
                .unwrap();
            (
                relation.trim_matches('"').to_owned(),
                offset.parse().unwrap(),
            )
        };
        let pages = header.split(", ").filter(|page| !page.is_empty());
        pages.map(link).collect()
    }

    fn links(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        expected
            .iter()
            .map(|&(relation, offset)| (relation.to_owned(), offset))
            .collect()
    }

    #[test]
    fn a_page_in_the_middle_has_all_four_links() {
        assert_eq!(
            header(
                "/api/v1/hydrorisk",
                Page {
                    limit: 20,
                    offset: 40
                },
                101,
                ""
            ),
            "</api/v1/hydrorisk?limit=20&offset=0>; rel=\"first\", \
             </api/v1/hydrorisk?limit=20&offset=20>; rel=\"prev\", \
             </api/v1/hydrorisk?limit=20&offset=60>; rel=\"next\", \
             </api/v1/hydrorisk?limit=20&offset=100>; rel=\"last\", \
             </api/v1/sources>; rel=\"describedby\""
        );
    }

    #[test]
    fn the_first_page_has_no_prev_and_the_last_no_next() {
        assert_eq!(
            offsets(20, 0, 40),
            links(&[("first", 0), ("next", 20), ("last", 20)])
        );
        assert_eq!(
            offsets(20, 20, 40),
            links(&[("first", 0), ("prev", 0), ("last", 20)])
        );
        assert_eq!(offsets(20, 0, 20), links(&[("first", 0), ("last", 0)]));
    }

    #[test]
    fn beyond_the_end_prev_leads_back_to_the_last_page() {
        assert_eq!(
            offsets(20, 1000, 30),
            links(&[("first", 0), ("prev", 20), ("last", 20)])
        );
        assert_eq!(
            offsets(20, 39, 5),
            links(&[("first", 0), ("prev", 0), ("last", 0)])
        );
        assert_eq!(
            offsets(100, Page::MAX_OFFSET, 5),
            links(&[("first", 0), ("prev", 0), ("last", 0)])
        );
    }

    #[test]
    fn a_history_without_rows_links_to_no_page() {
        assert_eq!(offsets(20, 0, 0), []);
    }

    #[test]
    fn following_next_from_anywhere_ends_at_last() {
        for (limit, offset, total) in [
            (7, 0, 50),
            (7, 3, 50),
            (20, 19, 20),
            (100, 1, 1001),
            (1, 0, 9),
        ] {
            let last = offsets(limit, offset, total).pop().unwrap().1;
            let mut at = offset;
            while let Some((_, next)) = offsets(limit, at, total)
                .into_iter()
                .find(|(name, _)| name == "next")
            {
                at = next;
            }
            assert_eq!(at, last, "limit {limit}, offset {offset}, total {total}");
        }
    }
}
