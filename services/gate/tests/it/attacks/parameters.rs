//! Queries that two parties could decode differently.

use super::{HOST, request, with_key};
use crate::site::Site;
use crate::whole::{refusal, served};

const UNDECODABLE: [&str; 14] = [
    "%",
    "dept=%4",
    "x=%zz",
    "%zz=x",
    "a=%ff",
    "%ff=1",
    "a=%c0%af",
    "a=%ed%a0%80",
    "a=%f8%88%80%80%80",
    "dept=%00",
    "%00=1",
    "limit=5&x=%",
    "%&limit=5",
    "a=b&&c=%e2%82",
];

/// What of `limit` the service gets to judge, as it was sent and as it is sent on.
const VALUES: [(&str, &str); 14] = [
    ("05", "05"),
    ("%2B5", "%2B5"),
    ("+5", "%205"),
    ("%205", "%205"),
    ("5.0", "5.0"),
    ("1e2", "1e2"),
    ("%D9%A5", "%D9%A5"),
    ("-1", "-1"),
    ("", ""),
    ("5&limit=5", "5&limit=5"),
    ("5%26offset%3D1", "5%26offset%3D1"),
    ("5%20HTTP/1.1%0D%0AX:%20y", "5%20HTTP%2F1.1%0D%0AX%3A%20y"),
    (
        "999999999999999999999999999999",
        "999999999999999999999999999999",
    ),
    ("5;offset=9007199254740992", "5%3Boffset%3D9007199254740992"),
];

/// Bad percent-encoding, bytes that are no UTF-8, and NUL, in names and in values.
pub fn undecodable() -> Vec<Vec<u8>> {
    let line = |query: &str| format!("GET /api/v1/stress?{query} HTTP/1.1");
    UNDECODABLE
        .map(|query| request(&line(query), HOST))
        .to_vec()
}

/// Values that are decoded and built anew, for the service to judge.
pub fn judged_by_the_service(bearer: &str) -> Vec<Vec<u8>> {
    let line = |value: &str| format!("GET /api/v1/hydrorisk?limit={value} HTTP/1.1");
    VALUES
        .map(|(value, _)| with_key(bearer, &line(value), HOST))
        .to_vec()
}

#[tokio::test]
async fn a_query_that_cannot_be_decoded_is_refused_before_anybody_asks_for_a_key() {
    let site = Site::start().await;
    for (attack, query) in undecodable().iter().zip(UNDECODABLE) {
        let answers = site.answers(attack).await;
        assert_eq!(answers, [refusal("invalid_query")], "{query}");
    }
}

#[tokio::test]
async fn the_service_judges_what_was_meant_and_nothing_slips_into_its_request() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    for (served_before, request) in (0..).zip(judged_by_the_service(&bearer)) {
        assert_eq!(site.answers(&request).await, [served(119 - served_before)]);
    }
    for (seen, (_, value)) in site.service.seen().iter().zip(VALUES) {
        let line = format!("GET /api/v1/hydrorisk?limit={value} HTTP/1.1");
        assert_eq!(seen.line, line);
    }
}
