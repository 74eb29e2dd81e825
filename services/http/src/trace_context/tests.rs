//! Trace contexts that are continued, and those that are dropped (W3C Trace Context).

use super::*;

const PARENT: &str = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";

fn read(fields: &[(HeaderName, &str)]) -> Option<TraceContext> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name, HeaderValue::try_from(*value).unwrap());
    }
    TraceContext::from_headers(&headers)
}

fn state(fields: &[&str]) -> Option<String> {
    let states = fields.iter().map(|field| (TRACESTATE, *field));
    let all: Vec<_> = [(TRACEPARENT, PARENT)].into_iter().chain(states).collect();
    let state = read(&all).unwrap().state?;
    Some(state.to_str().unwrap().to_owned())
}

#[test]
fn a_well_formed_context_is_read_and_written_alike() {
    let read = read(&[(TRACEPARENT, PARENT), (TRACESTATE, "vendor=1")]).unwrap();
    assert_eq!(read.trace.to_string(), "0123456789abcdef0123456789abcdef");
    assert_eq!(read.parent.to_string(), "0123456789abcdef");
    assert!(read.sampled);
    assert_eq!(read.traceparent(), PARENT);
    assert_eq!(read.state.unwrap(), "vendor=1");
}

#[test]
fn unknown_flags_are_not_passed_on() {
    let asked = PARENT.replace("-01", "-fe");
    assert!(!read(&[(TRACEPARENT, &asked)]).unwrap().sampled);
}

#[test]
fn a_later_version_is_read_as_far_as_it_is_known() {
    for later in [
        PARENT.replace("00-", "01-"),
        PARENT.replace("00-", "cc-") + "-more",
    ] {
        assert!(read(&[(TRACEPARENT, &later)]).is_some(), "{later}");
    }
}

#[test]
fn a_malformed_parent_is_as_good_as_none() {
    let malformed = [
        String::new(),
        "x".repeat(55),
        PARENT[..54].into(),
        PARENT.to_uppercase(),
        format!("{PARENT}-more"),
        format!("{PARENT}0"),
        PARENT.replace("00-", "ff-"),
        PARENT.replace("00-", "0g-"),
        PARENT.replace('-', "_"),
        PARENT.replace("0123456789abcdef0123456789abcdef", &"0".repeat(32)),
        PARENT.replace("-0123456789abcdef-", "-0000000000000000-"),
        PARENT.replace("-01", "-0x"),
        PARENT.replace("00-", "01-") + "more",
    ];
    for text in malformed {
        assert_eq!(read(&[(TRACEPARENT, &text)]), None, "{text}");
    }
    assert_eq!(read(&[(TRACEPARENT, PARENT), (TRACEPARENT, PARENT)]), None);
}

#[test]
fn states_are_one_list_and_malformed_ones_are_left_out() {
    assert_eq!(state(&["a=1", " b@c=2 ,\td=3"]).unwrap(), "a=1,b@c=2,d=3");
    let many = vec!["a=1"; 33].join(",");
    let long = format!("a={}", "1".repeat(256)) + &format!(",b={}", "1".repeat(256));
    for malformed in [
        "", "a", "A=1", "=1", "a=", "a=b=c", "a=\u{e9}", &many, &long,
    ] {
        assert_eq!(state(&[malformed]), None, "{malformed}");
    }
}
