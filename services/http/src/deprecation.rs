//! Announcement in an answer that its path will be removed (RFC 9745 and RFC 8594).

use http::header::LINK;
use http::{HeaderMap, HeaderName, HeaderValue};

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// A deprecated path. The fields are the headers' values as sent: they never change while a process runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deprecation {
    /// Beginning: a structured field's date, `@` and seconds since the epoch, such as `@1767225600`.
    pub since: &'static str,
    /// Last time at which the path answers: an HTTP date, such as `Thu, 31 Dec 2026 23:59:59 GMT`.
    pub sunset: &'static str,
    /// Path to use instead, such as `/api/v2/stress`.
    pub successor: &'static str,
}

impl Deprecation {
    /// Adds the headers, which are on every answer of the route, a refusal too. The service's own links stay.
    pub fn label(&self, headers: &mut HeaderMap) {
        headers.insert(DEPRECATION, HeaderValue::from_static(self.since));
        headers.insert(SUNSET, HeaderValue::from_static(self.sunset));
        let successor = format!("<{}>; rel=\"successor-version\"", self.successor);
        headers.append(
            LINK,
            HeaderValue::try_from(successor).expect("a path of ours is visible ASCII"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_the_day_the_end_and_the_successor_beside_its_own_links() {
        let deprecation = Deprecation {
            since: "@1767225600",
            sunset: "Thu, 31 Dec 2026 23:59:59 GMT",
            successor: "/api/v2/hydrorisk",
        };
        let mut headers = HeaderMap::new();
        headers.insert(
            LINK,
            HeaderValue::from_static("</api/v1/hydrorisk?offset=10>; rel=\"next\""),
        );
        deprecation.label(&mut headers);
        assert_eq!(headers[DEPRECATION], deprecation.since);
        assert_eq!(headers[SUNSET], deprecation.sunset);
        let links: Vec<_> = headers.get_all(LINK).iter().collect();
        assert_eq!(
            links,
            [
                "</api/v1/hydrorisk?offset=10>; rel=\"next\"",
                "</api/v2/hydrorisk>; rel=\"successor-version\"",
            ]
        );
    }
}
