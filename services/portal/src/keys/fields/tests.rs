//! Rules of each member, and that the member is named.

use std::net::IpAddr;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use water_domain::KeyPrefix;
use water_http::{Code, Language, Query, RequestHead, RequestIds, TrustedProxies};

use super::*;
use crate::account_request::AccountRequest;

const NOW: &str = "2026-07-01T12:00:00Z";
const JSON: &str = "application/json";

fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

/// Reads a body of this content type as a request for a new key.
fn read(kind: Option<&str>, body: &[u8]) -> Result<Body, Problem> {
    let mut request = Request::post("/account/v1/accounts/acme/keys");
    if let Some(kind) = kind {
        request = request.header("content-type", kind);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    let client: IpAddr = [127, 0, 0, 1].into();
    let received = RequestHead::new(
        head,
        client,
        &TrustedProxies::new(Vec::new()),
        &RequestIds::new(1),
    );
    let asked = AccountRequest {
        received: &received,
        path: &["keys"],
        query: &Query::parse(None).unwrap(),
        body: &Bytes::copy_from_slice(body),
    };
    Body::read(&asked, &[CREATE, ROTATE].concat(), &KeyPrefix::default())
}

fn body(value: &Value) -> Body {
    read(Some(JSON), value.to_string().as_bytes()).unwrap()
}

fn good() -> Value {
    json!({
        "title": "Nightly import", "expiresAt": "2026-08-01T00:00:00Z", "sha256": "ab".repeat(32),
        "keyId": "a1B2c3D4e5F6", "replaces": "f6E5d4C3b2A1", "overlapSeconds": 3600,
    })
}

/// Returns a good body in which this member has this value.
fn with(member: &str, value: Value) -> Body {
    let mut changed = good();
    changed[member] = value;
    body(&changed)
}

/// Returns the code and the member at fault.
fn fault<T: std::fmt::Debug>(read: Result<T, Problem>) -> (Code, String) {
    let problem = read.unwrap_err();
    let code = problem.code();
    let body = problem.body(&RequestIds::new(1).mint(), Language::English);
    let told: Value = serde_json::from_slice(&body).unwrap();
    (
        code,
        told["parameter"].as_str().unwrap_or_default().to_owned(),
    )
}

fn is(member: &str) -> (Code, String) {
    (Code::InvalidField, member.to_owned())
}

#[test]
fn a_title_is_one_line_of_up_to_100_characters() {
    for good in ["a", "Été – nuit", &"é".repeat(100), "  trimmed  "] {
        let title = title(&with("title", json!(good))).unwrap();
        assert_eq!(title, good.trim());
    }
    let too_long = "x".repeat(101);
    let controls = [
        "two\nlines",
        "bell\u{7}",
        "a\u{2028}b",
        "turned\u{202e}",
        "a\u{2066}b",
    ];
    for bad in ["", "   ", &too_long].into_iter().chain(controls) {
        assert_eq!(
            fault(title(&with("title", json!(bad)))),
            is("title"),
            "{bad:?}"
        );
    }
    for bad in [json!(null), json!(1), json!(["a"])] {
        assert_eq!(fault(title(&with("title", bad))), is("title"));
    }
}

#[test]
fn a_hash_is_64_lower_case_digits_and_a_key_id_12_letters_or_digits() {
    let fresh = |body: &Body| fresh(body, None, now());
    assert_eq!(
        fresh(&body(&good())).unwrap().key_id.as_str(),
        "a1B2c3D4e5F6"
    );
    for bad in ["", &"AB".repeat(32), &"a".repeat(63), &"g".repeat(64)] {
        assert_eq!(
            fault(fresh(&with("sha256", json!(bad)))),
            is("sha256"),
            "{bad}"
        );
    }
    for bad in ["", "short", "a1B2c3D4e5F67", "a1B2c3D4e5F-", "portal000000"] {
        assert_eq!(
            fault(fresh(&with("keyId", json!(bad)))),
            is("keyId"),
            "{bad}"
        );
    }
    for member in ["sha256", "keyId"] {
        assert_eq!(fault(fresh(&with(member, json!(null)))), is(member));
    }
}

#[test]
fn a_key_expires_at_a_time_to_come_or_never() {
    let expires = |value: Value, days| fresh(&with("expiresAt", value), days, now());
    assert_eq!(expires(json!(null), None).unwrap().expires, None);
    let hour = json!("2026-07-01T15:00:00+02:00");
    let printed = expires(hour, None).unwrap().expires.unwrap().to_string();
    assert_eq!(printed, "2026-07-01T13:00:00.000Z");
    for bad in [
        json!(NOW),
        json!("2020-01-01T00:00:00Z"),
        json!("tomorrow"),
        json!(1),
    ] {
        assert_eq!(fault(expires(bad, None)), is("expiresAt"));
    }
}

#[test]
fn the_installation_may_bound_a_keys_life() {
    let expires = |value: Value| fresh(&with("expiresAt", value), Some(30), now());
    assert!(expires(json!("2026-07-31T12:00:00Z")).is_ok());
    for bad in [json!("2026-07-31T12:00:00.001Z"), json!(null)] {
        assert_eq!(fault(expires(bad)), is("expiresAt"));
    }
}

#[test]
fn an_overlap_is_0_to_7_days() {
    let rotation = |value: Value| rotation(&with("overlapSeconds", value), None, now());
    for good in [0, 604_800] {
        assert_eq!(rotation(json!(good)).unwrap().overlap, good);
    }
    for bad in [
        json!(604_801),
        json!(-1),
        json!(1.5),
        json!("3600"),
        json!(null),
    ] {
        assert_eq!(fault(rotation(bad)), is("overlapSeconds"));
    }
}

#[test]
fn a_rotation_names_what_it_replaces_and_may_end_what_was_before() {
    let read = |body: &Body| rotation(body, None, now());
    assert!(!read(&body(&good())).unwrap().end_previous);
    assert!(
        read(&with("endPrevious", json!(true)))
            .unwrap()
            .end_previous
    );
    assert_eq!(
        fault(read(&with("endPrevious", json!("yes")))),
        is("endPrevious")
    );
    assert_eq!(fault(read(&with("replaces", json!("x")))), is("replaces"));
}

#[test]
fn unknown_and_repeated_members_are_named() {
    for (text, member) in [
        (r#"{"title": "a", "accountId": "globex"}"#, "accountId"),
        (r#"{"title": "a", "Title": "b"}"#, "Title"),
        (r#"{"title": "a", "title": "a"}"#, "title"),
        (r#"{"title": "a", "titl\u0065": "b"}"#, "title"),
    ] {
        assert_eq!(
            fault(read(Some(JSON), text.as_bytes())),
            is(member),
            "{text}"
        );
    }
}

#[test]
fn a_body_is_one_json_object() {
    for bad in [
        "",
        "[]",
        "1",
        "\"a\"",
        "{",
        "{}{}",
        "{\"title\": \"\u{0}\"}",
        "title=a",
    ] {
        let fault = fault(read(Some(JSON), bad.as_bytes()));
        assert_eq!(fault.0, Code::InvalidBody, "{bad}");
    }
    assert_eq!(
        fault(read(Some(JSON), b"{\"title\": \"\xff\"}")).0,
        Code::InvalidBody
    );
}

#[test]
fn another_content_type_is_refused() {
    let text = good().to_string();
    let kinds = [
        (Some("application/json"), true),
        (Some("Application/JSON; charset=UTF-8"), true),
        (Some("text/plain"), false),
        (Some("application/x-www-form-urlencoded"), false),
        (Some("application/json; charset=latin-1"), false),
        (Some("application/jsonx"), false),
        (None, false),
    ];
    for (kind, is_taken) in kinds {
        let read = read(kind, text.as_bytes());
        assert_eq!(read.is_ok(), is_taken, "{kind:?}");
        if !is_taken {
            assert_eq!(fault(read).0, Code::UnsupportedMediaType);
        }
    }
}

#[test]
fn a_key_is_found_however_it_is_written() {
    let key = format!("wdk_a1B2c3D4e5F6_{}", "x".repeat(49));
    let escaped = key.replace('w', "\\u0077");
    for text in [
        format!(r#"{{"title": "{key}"}}"#),
        format!(r#"{{"title": "my {escaped}!"}}"#),
        format!(r#"{{"{escaped}": 1}}"#),
        format!(r#"{{"title": ["{escaped}"]}}"#),
        format!(r#"{{"title": {{"{escaped}": [{{"a": "{key}"}}]}}}}"#),
    ] {
        assert_eq!(
            fault(read(Some(JSON), text.as_bytes())).0,
            Code::KeyInRequest,
            "{text}"
        );
    }
}
