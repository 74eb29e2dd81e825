//! Representations under every kind of condition.

use std::io::Read;

use super::*;

const GZIP: (HeaderName, &str) = (ACCEPT_ENCODING, "gzip");
const BROTLI: (HeaderName, &str) = (ACCEPT_ENCODING, "br");

fn large() -> Bytes {
    Bytes::from(format!("{{\"data\":\"{}\"}}", "eau".repeat(500)))
}

fn ask<const N: usize>(
    representation: &Representation,
    headers: [(HeaderName, &str); N],
) -> Response<Bytes> {
    let headers = headers.map(|(name, value)| (name, value.parse().unwrap()));
    representation.answer(&Conditions::from_headers(&HeaderMap::from_iter(headers)))
}

fn header(response: &Response<Bytes>, name: HeaderName) -> &str {
    response
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

fn unzip(response: &Response<Bytes>) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(response.body().as_ref())
        .read_to_end(&mut plain)
        .unwrap();
    plain
}

fn unbrotli(response: &Response<Bytes>) -> Vec<u8> {
    let mut plain = Vec::new();
    brotli::Decompressor::new(response.body().as_ref(), 4096)
        .read_to_end(&mut plain)
        .unwrap();
    plain
}

#[test]
fn a_plain_answer_has_every_header_of_the_contract() {
    let response = ask(&Representation::new("{}", CACHE_DATASET), []);
    assert_eq!(response.status(), 200);
    assert_eq!(response.body(), "{}");
    assert_eq!(header(&response, CONTENT_TYPE), "application/json");
    assert_eq!(header(&response, CONTENT_LENGTH), "2");
    assert_eq!(
        header(&response, CACHE_CONTROL),
        "private, max-age=60, must-revalidate"
    );
    assert_eq!(
        header(&response, VARY),
        "Authorization, Accept, Accept-Encoding"
    );
    assert_eq!(header(&response, X_CONTENT_TYPE_OPTIONS), "nosniff");
    assert_eq!(header(&response, ACCEPT_RANGES), "none");
    // The first 16 bytes of the SHA-256 of `{}`.
    assert_eq!(
        header(&response, ETAG),
        "\"44136fa355b3678a1146ad16f7e8649e\""
    );
}

#[test]
fn what_every_key_gets_varies_by_its_coding_only() {
    let representation = Representation::new("{}", CACHE_DATASET).for_every_key();
    let answer = ask(&representation, []);
    assert_eq!(header(&answer, VARY), "Accept-Encoding");
}

#[test]
fn a_body_of_1_kib_is_coded_and_a_smaller_one_is_not() {
    for (length, coding) in [(1023, ""), (1024, "gzip")] {
        let representation = Representation::new(vec![b' '; length], CACHE_HISTORY);
        let response = ask(&representation, [GZIP]);
        assert_eq!(header(&response, CONTENT_ENCODING), coding);
    }
}

#[test]
fn codings_hold_the_same_bytes_under_their_own_tags() {
    for representation in [
        Representation::new(large(), CACHE_HISTORY),
        Representation::prepared(large(), CACHE_DATASET),
    ] {
        let (plain, gzip, brotli) = (
            ask(&representation, []),
            ask(&representation, [GZIP]),
            ask(&representation, [BROTLI]),
        );
        assert_eq!(unzip(&gzip), large());
        assert_eq!(unbrotli(&brotli), large());
        for response in [&gzip, &brotli] {
            assert_eq!(header(response, ACCEPT_RANGES), "none");
        }
        assert_eq!(header(&gzip, CONTENT_LENGTH), gzip.body().len().to_string());
        let tag = header(&plain, ETAG).trim_end_matches('"');
        assert_eq!(header(&gzip, ETAG), format!("{tag}-gzip\""));
        assert_eq!(header(&brotli, ETAG), format!("{tag}-br\""));
    }
}

#[test]
fn who_has_the_bytes_gets_304_without_them() {
    let representation = Representation::prepared(large(), CACHE_DATASET);
    let tag = header(&ask(&representation, [GZIP]), ETAG).to_owned();
    for condition in [
        tag.clone(),
        format!("W/{tag}"),
        format!("\"x\" , {tag}"),
        "*".to_owned(),
    ] {
        let response = ask(&representation, [GZIP, (IF_NONE_MATCH, &condition)]);
        assert_eq!(response.status(), 304, "{condition}");
        assert!(response.body().is_empty());
        assert_eq!(header(&response, ETAG), tag);
        assert_eq!(header(&response, CONTENT_LENGTH), "");
        assert!(!header(&response, CACHE_CONTROL).is_empty());
    }
}

#[test]
fn who_has_the_bytes_in_another_coding_gets_304_too() {
    let representation = Representation::new(large(), CACHE_HISTORY);
    let plain = header(&ask(&representation, []), ETAG).to_owned();
    let gzip = header(&ask(&representation, [GZIP]), ETAG).to_owned();
    let undone = ask(&representation, [(IF_NONE_MATCH, &gzip)]);
    // The tag that 200 would have (RFC 9110 §15.4.5).
    assert_eq!(
        (undone.status().as_u16(), header(&undone, ETAG)),
        (304, &*plain)
    );
    for condition in [plain, gzip] {
        let response = ask(&representation, [BROTLI, (IF_NONE_MATCH, &condition)]);
        assert_eq!(response.status(), 304, "{condition}");
    }
}

#[test]
fn who_has_other_bytes_gets_200() {
    let representation = Representation::new(large(), CACHE_HISTORY);
    let tag = header(&ask(&representation, []), ETAG).to_owned();
    let unknown = tag.replace('"', "");
    for condition in [
        "\"44136fa355b3678a1146ad16f7e8649e\"",
        "\"44136fa355b3678a1146ad16f7e8649e-gzip\"",
        &format!("\"{unknown}-zstd\""),
        &unknown,
        "",
        "W/",
    ] {
        let response = ask(&representation, [BROTLI, (IF_NONE_MATCH, condition)]);
        assert_eq!(response.status(), 200, "{condition}");
    }
}

#[test]
fn a_link_is_passed_on() {
    let link = HeaderValue::from_static("</api/v1/hydrorisk?offset=20>; rel=\"next\"");
    let representation = Representation::new("{}", CACHE_HISTORY).with_link(link.clone());
    assert_eq!(ask(&representation, []).headers()[LINK], link);
}
