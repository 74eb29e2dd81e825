//! Problems as a client sees them: body and headers.

use http::StatusCode;
use serde_json::{Value, json};
use water_domain::timestamp::InvalidTimestamp;
use water_domain::{PageError, departement};

use super::*;
use crate::RequestIds;

#[derive(Debug, thiserror::Error)]
#[error("cannot read the page")]
struct Store {
    transient: bool,
    #[source]
    source: std::io::Error,
}

impl Fault for Store {
    fn is_transient(&self) -> bool {
        self.transient
    }
}

fn store(transient: bool) -> Store {
    Store {
        transient,
        source: std::io::Error::other("password hunter2 refused"),
    }
}

fn render(problem: Problem) -> (Response<()>, Value) {
    let response: Response<Vec<u8>> =
        problem.into_response(&RequestIds::new(7).mint(), Language::English);
    let (parts, body) = response.into_parts();
    (
        Response::from_parts(parts, ()),
        serde_json::from_slice(&body).unwrap(),
    )
}

#[test]
fn a_problem_is_an_object_of_rfc_9457_with_our_fields() {
    let problem = Problem::invalid_parameter("limit", texts::given_once("limit"));
    let response: Response<Vec<u8>> =
        problem.into_response(&RequestIds::new(7).mint(), Language::English);
    let expected = concat!(
        r#"{"type":"urn:waterdata:problem:invalid_parameter","title":"A parameter is not valid","#,
        r#""status":400,"detail":"limit may be given once.","code":"invalid_parameter","#,
        r#""requestId":"0000000000000007-0","parameter":"limit"}"#
    );
    assert_eq!(String::from_utf8_lossy(response.body()), expected);
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    assert_eq!(
        response.headers()["content-length"],
        expected.len().to_string()
    );
    assert_eq!(response.headers()["content-language"], "en");
    assert_eq!(
        response.headers()["vary"],
        "Authorization, Accept, Accept-Encoding, Accept-Language"
    );
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(response.headers()["x-request-id"], "0000000000000007-0");
}

#[test]
fn a_problem_in_french_has_the_same_fields_and_codes() {
    let problem = Problem::invalid_parameter("limit", texts::given_once("limit"));
    let response: Response<Vec<u8>> =
        problem.into_response(&RequestIds::new(7).mint(), Language::French);
    let expected = concat!(
        r#"{"type":"urn:waterdata:problem:invalid_parameter","title":"Un paramètre n’est pas valable","#,
        r#""status":400,"detail":"limit ne peut être donné qu’une fois.","code":"invalid_parameter","#,
        r#""requestId":"0000000000000007-0","parameter":"limit"}"#
    );
    assert_eq!(String::from_utf8_lossy(response.body()), expected);
    assert_eq!(
        response.headers()["content-length"],
        expected.len().to_string()
    );
    assert_eq!(response.headers()["content-language"], "fr");
}

#[test]
fn every_title_and_detail_is_french_with_french_spaces_and_the_same_arguments() {
    let titles = Code::ALL.iter().map(|code| both(&texts::title(*code)));
    let details = texts::DETAILS.iter().copied();
    let details = details.map(|(english, french)| (english.to_owned(), french.to_owned()));
    let unknown = ["xx", "20", "975", "97", "99"].map(|code| departement::parse(code).unwrap_err());
    let rules = [PageError::Limit, PageError::BulkLimit, PageError::Offset];
    let made = unknown
        .iter()
        .map(|error| both(&texts::no_departement(error)));
    let made = made.chain(rules.map(|error| both(&texts::page_rule(error))));
    let time = both(&texts::time_rule(InvalidTimestamp));
    for (english, french) in titles.chain(details).chain(made).chain([time]) {
        assert_ne!(english, french);
        assert_eq!(names(&english), names(&french), "{english}: {french}");
        let is_plain = |pair: &[char]| pair[0] == ' ' && ":;!?»".contains(pair[1]);
        let letters: Vec<char> = french.chars().collect();
        assert!(!letters.windows(2).any(is_plain), "{french}");
        assert!(!french.contains(['\'', '"']), "{french}");
    }
}

/// Returns a text in English and in French.
fn both(text: &Text) -> (String, String) {
    let text = |language| text.in_language(language).to_owned();
    (text(Language::English), text(Language::French))
}

/// Returns the numbers and arguments of a text, sorted.
fn names(text: &str) -> Vec<&str> {
    let part_of_name = |letter: char| letter.is_ascii_digit() || "{}".contains(letter);
    let words = text.split(|letter: char| !letter.is_alphanumeric() && !"{}".contains(letter));
    let mut names: Vec<_> = words.filter(|word| word.contains(part_of_name)).collect();
    names.sort();
    names
}

#[test]
fn every_401_and_403_says_how_to_authenticate() {
    for (problem, error) in [
        (Problem::missing_credentials(), ""),
        (Problem::other_scheme(Some("Basic")), ""),
        (Problem::other_scheme(None), ""),
        (Problem::invalid_key(), ", error=\"invalid_token\""),
        (Problem::key_expired(), ", error=\"invalid_token\""),
        (Problem::key_suspended(), ", error=\"invalid_token\""),
        (Problem::key_not_yet_valid(), ", error=\"invalid_token\""),
        (Problem::invalid_request(), ", error=\"invalid_request\""),
        (
            Problem::plan_insufficient(),
            ", error=\"insufficient_scope\"",
        ),
    ] {
        let (response, _) = render(problem);
        let expected = format!("Bearer realm=\"water-data\"{error}");
        assert_eq!(response.headers()["www-authenticate"], expected);
    }
}

#[test]
fn another_scheme_is_named_if_it_is_known_in_both_languages() {
    let remedy = both(&texts::missing_credentials());
    for (scheme, english, french) in [
        (Some("Basic"), "the scheme Basic,", "le schéma Basic,"),
        (None, "not begin with Bearer.", "commence pas par Bearer."),
    ] {
        let problem = Problem::other_scheme(scheme);
        assert_eq!(problem.code(), Code::MissingCredentials);
        let detail = both(&problem.detail);
        assert!(detail.0.contains(english) && detail.0.ends_with(&remedy.0));
        assert!(detail.1.contains(french) && detail.1.ends_with(&remedy.1));
    }
}

#[test]
fn an_unknown_name_is_repeated_if_it_is_short_and_seen_as_it_is() {
    for (name, is_repeated) in [
        ("département", true),
        ("dept ", true),
        ("filter[\"dept\"]", true),
        ("dept\t", false),
        ("dept\u{85}", false),
        ("dept\u{a0}", false),
        ("dept\u{2028}", false),
        ("\u{202e}tped", false),
        ("de\u{200b}pt", false),
        ("\u{feff}dept", false),
        ("dept\u{3164}", false),
        // In bytes it is as long as a key.
        ("éééééééééééééééé", false),
    ] {
        let problem = Problem::unknown_parameter(name, None, &["dept"]);
        let repeated = is_repeated.then_some(name);
        assert_eq!(problem.parameter.as_deref(), repeated, "{name:?}");
    }
}

#[test]
fn a_429_names_the_windows_and_when_to_come_back() {
    let (response, body) = render(Problem::rate_limited(&["minute", "day"], 17));
    assert_eq!(response.headers()["retry-after"], "17");
    assert_eq!(body["violated-policies"], json!(["minute", "day"]));
    let (_, body) = render(Problem::too_many_failures(2));
    assert_eq!(body["code"], "rate_limited");
    assert_eq!(body.get("violated-policies"), None);
}

#[test]
fn a_405_says_what_is_allowed() {
    let (response, _) = render(Problem::method_not_allowed());
    assert_eq!(response.headers()["allow"], "GET, HEAD");
}

#[test]
fn a_stores_failure_is_503_if_it_may_pass_and_500_if_not_and_never_shown() {
    for (transient, status, code) in [
        (true, 503, "dependency_unavailable"),
        (false, 500, "internal"),
    ] {
        let (response, body) = render(Problem::from(store(transient)));
        assert_eq!(
            (response.status().as_u16(), &body["code"]),
            (status, &json!(code))
        );
        assert_eq!(response.headers().contains_key("retry-after"), transient);
        assert!(!body.to_string().contains("hunter2"));
    }
}

#[test]
fn codes_are_distinct_and_their_types_are_named_after_them() {
    let mut seen: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), Code::ALL.len());
    for code in Code::ALL {
        assert_eq!(
            code.type_uri(),
            format!("urn:waterdata:problem:{}", code.as_str())
        );
        assert!(code.status().is_client_error() || code.status().is_server_error());
    }
}
