//! Properties that hold for any bytes from a client.

use std::io::Read;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use proptest::prelude::*;
use water_domain::Timestamp;
use water_http::identity::X_WATER_IDENTITY;
use water_http::representation::{CACHE_HISTORY, Conditions};
use water_http::{Identity, Language, Query, Representation, RequestIds, Signer, Verifier};

const TARGET: &str = "/api/v1/hydrorisk?limit=5";

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + millis).unwrap()
}

fn signed() -> HeaderValue {
    let identity = Identity {
        account: "acme.fr".parse().unwrap(),
        key: "0123456789ab".parse().unwrap(),
        plan: "Enterprise".parse().unwrap(),
    };
    let key = "a".repeat(64).parse().unwrap();
    Signer::new(&key).sign(&identity, at(30_000), &Method::GET, TARGET)
}

/// Whether a service would accept the header's value.
fn believed(value: HeaderValue) -> bool {
    let headers = HeaderMap::from_iter([(X_WATER_IDENTITY, value)]);
    let verifier = Verifier::new(&"a".repeat(64).parse().unwrap(), None);
    verifier
        .verify(&headers, &Method::GET, TARGET, at(0))
        .is_ok()
}

fn ask(representation: &Representation, headers: &[(HeaderName, HeaderValue)]) -> Response<Bytes> {
    representation.answer(&Conditions::from_headers(
        &headers.iter().cloned().collect(),
    ))
}

fn decoded(response: &Response<Bytes>) -> Vec<u8> {
    let coded = response.body().as_ref();
    let mut plain = Vec::new();
    match response
        .headers()
        .get(CONTENT_ENCODING)
        .map(HeaderValue::as_bytes)
    {
        None => plain.extend_from_slice(coded),
        Some(b"gzip") => drop(
            flate2::read::GzDecoder::new(coded)
                .read_to_end(&mut plain)
                .unwrap(),
        ),
        Some(b"br") => drop(
            brotli::Decompressor::new(coded, 4096)
                .read_to_end(&mut plain)
                .unwrap(),
        ),
        Some(other) => panic!("unknown coding {other:?}"),
    }
    plain
}

/// Generates any bytes that a header can have.
fn field() -> impl Strategy<Value = HeaderValue> {
    let bytes = prop::collection::vec(
        prop_oneof![Just(b'\t'), 0x20..=0x7e_u8, 0x80..=0xff_u8],
        0..80,
    );
    bytes.prop_map(|bytes| HeaderValue::from_bytes(&bytes).unwrap())
}

/// Generates values of `Accept-Encoding`, sensible or not.
fn accept() -> impl Strategy<Value = HeaderValue> {
    let item =
        "(br|gzip|x-gzip|identity|deflate|\\*|BR)( ?; ?[qQ]=(0|1|0\\.[0-9]{0,4}|-1|nan|inf|x))?";
    let list =
        prop::collection::vec(item, 0..5).prop_map(|items| items.join(", ").parse().unwrap());
    prop_oneof![list, field()]
}

/// Generates bodies on both sides of 1 KiB, the size from which they are coded.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |length| prop::collection::vec(any::<u8>(), length);
    prop_oneof![bytes(0..20), bytes(1020..1030), bytes(4000..4010)]
}

proptest! {
    #[test]
    fn a_changed_or_invented_identity_is_not_believed(
        place in any::<prop::sample::Index>(),
        byte in 0x20..=0x7e_u8,
        tail in "[ -~]{1,20}",
        invented in field(),
        account in "[a-z]{1,8}",
        mac in "[0-9a-f]{64}",
    ) {
        prop_assert!(believed(signed()));
        let signed = signed().to_str().unwrap().to_owned();
        let place = place.index(signed.len());
        let (before, rest) = signed.split_at(place);
        let (old, after) = rest.split_at(1);
        // Hex digits of either case give the same signature.
        if !old.as_bytes()[0].eq_ignore_ascii_case(&byte) {
            let changed = format!("{before}{}{after}", char::from(byte));
            prop_assert!(!believed(changed.parse().unwrap()));
        }
        prop_assert!(!believed(before.parse().unwrap()));
        prop_assert!(!believed((signed.clone() + &tail).parse().unwrap()));
        prop_assert!(!believed(invented));
        let text = format!("v1;account={account};key=0123456789ab;plan=Enterprise;exp=1800000030000;mac={mac}");
        prop_assert!(!believed(text.parse().unwrap()));
    }

    #[test]
    fn whatever_a_client_accepts_it_reads_the_same_bytes_and_can_ask_for_them_again(
        body in body(),
        accept in accept(),
    ) {
        let representation = Representation::new(body.clone(), CACHE_HISTORY);
        let accepted = (ACCEPT_ENCODING, accept);
        let full = ask(&representation, std::slice::from_ref(&accepted));
        prop_assert_eq!(decoded(&full), body);
        prop_assert_eq!(full.headers()[CONTENT_LENGTH].to_str().unwrap(), full.body().len().to_string());

        let known = ask(&representation, &[accepted, (IF_NONE_MATCH, full.headers()[ETAG].clone())]);
        prop_assert_eq!((known.status().as_u16(), known.body().len()), (304, 0));
    }

    #[test]
    fn no_condition_but_a_star_hides_bytes_that_the_client_does_not_have(condition in field()) {
        let has = |part: &[u8]| condition.as_bytes().split(|byte| *byte == b',').any(|item| item.trim_ascii() == part);
        prop_assume!(!has(b"*"));
        let answer = ask(&Representation::new("{}", CACHE_HISTORY), &[(IF_NONE_MATCH, condition.clone())]);
        prop_assert_eq!(answer.status().as_u16(), 200);
    }

    #[test]
    fn a_refused_value_is_not_repeated(value in "[A-Z]{6,12}", name in prop::sample::select(vec!["limit", "offset", "dept"])) {
        let text = format!("{name}={value}");
        let query = Query::parse(Some(&text)).unwrap();
        let refused = match name {
            "dept" => query.departement().map(drop),
            _ => query.page().map(drop),
        };
        let refused = refused.unwrap_err();
        for language in [Language::English, Language::French] {
            let said = refused.body(&RequestIds::new(0).mint(), language);
            let said = String::from_utf8(said).unwrap();
            prop_assert!(said.contains(name) && !said.contains(&value), "{}", said);
        }
    }

    #[test]
    fn no_query_is_too_strange_to_be_judged(text in "[&=%+a-f0-9limtofsedp\u{e9} ]{0,60}") {
        let Ok(query) = Query::parse(Some(&text)) else { return Ok(()) };
        for judged in [query.departement().map(drop), query.page().map(drop)] {
            let status = judged.map_or_else(|problem| problem.code().status().as_u16(), |()| 200);
            prop_assert!([200, 400, 404].contains(&status));
        }
    }
}
