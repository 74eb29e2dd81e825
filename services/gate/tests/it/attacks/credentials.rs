//! Malformed credentials, keys where no key belongs, and guesses.

use water_domain::Timestamp;
use water_kit::{Gate, Key, SOON};

use super::{HOST, LINE, request, with_key};
use crate::whole::{all_answers, refusal, served};

/// Text of a key that was provided by its hash.
const PROVIDED: &str = "any-b64token/of+32.characters~or_more==";

/// Returns fields without a bearer, with the key in any place where a client might put it.
fn no_bearer(key: &str) -> Vec<String> {
    let elsewhere = [
        "X-API-Key: ",
        "X-Authorization: Bearer ",
        "Proxy-Authorization: Bearer ",
        "Cookie: api-key=",
        "Authorization: ",
        "Authorization: Token ",
        "Authorization: Bear ",
        "Authorization: Bearer2 ",
        "Authorization: Basic eDp5, Bearer ",
    ];
    let with_the_key = elsewhere.iter().map(|field| format!("{field}{key}\r\n"));
    let without = ["", "Authorization:\r\n", "Authorization: Basic eDp5\r\n"];
    let before_more = format!("Authorization: {key} x\r\n");
    let others = without.map(str::to_owned).into_iter().chain([before_more]);
    with_the_key.chain(others).collect()
}

/// Returns values of `Authorization` with the right scheme and a wrong key.
fn wrong_keys(good: &Key) -> Vec<Vec<u8>> {
    let (hash, good) = (good.hash(), &good.text);
    let (head, last) = good.split_at(good.len() - 1);
    let other = if last == "0" { "1" } else { "0" };
    let unknown = Key::new();
    let texts = [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer\t{good}"),
        format!("Bearer \t{good}"),
        format!("Bearer {good}, Bearer {good}"),
        format!("Bearer {good},"),
        format!("Bearer {good} {good}"),
        format!("Bearer \"{good}\""),
        format!("Bearer {head}{other}"),
        format!("Bearer {}", good.to_lowercase()),
        format!("Bearer {head}"),
        format!("Bearer {good}0"),
        format!("Bearer {}", unknown.text),
        format!("Bearer {}{}", &good[..17], &unknown.text[17..]),
        format!("Bearer {hash}"),
        format!("Bearer {good}\u{e9}"),
        format!("Bearer {}", "x".repeat(4096)),
    ];
    let bytes = [b"Bearer ", good.as_bytes(), b"\xff"].concat();
    let texts = texts.map(String::into_bytes);
    texts.into_iter().chain([bytes]).collect()
}

/// Returns queries that hold the key, under any name.
fn queries(key: &str) -> [String; 5] {
    [
        format!("api_key={key}"),
        key.to_owned(),
        format!("dept=34&Authorization=Bearer%20{key}"),
        format!("x=%77{}", &key[1..]),
        format!("{key}=34"),
    ]
}

fn authorized_by(value: &[u8]) -> Vec<u8> {
    let end = format!("\r\n{HOST}\r\n");
    let name = b"\r\nAuthorization: ";
    [LINE.as_bytes(), name, value, end.as_bytes()].concat()
}

/// Returns all of this file's inputs, made from a valid key.
pub fn inputs(key: &Key) -> Vec<Vec<u8>> {
    let (text, bearer) = (&key.text, key.bearer());
    let no_bearer = no_bearer(text).into_iter();
    let no_bearer = no_bearer.map(|fields| request(LINE, &format!("{fields}{HOST}")));
    let wrong = wrong_keys(key).into_iter();
    let queries = queries(text).map(|query| {
        let line = format!("GET /api/v1/stress?{query} HTTP/1.1");
        with_key(&bearer, &line, HOST)
    });
    let twice = with_key(&bearer, LINE, &format!("Authorization: {bearer}\r\n{HOST}"));
    no_bearer
        .chain(wrong.map(|value| authorized_by(&value)))
        .chain(queries)
        .chain([twice])
        .collect()
}

#[tokio::test]
async fn without_a_bearer_credentials_are_missing_wherever_the_key_is() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    for fields in no_bearer(&key.text) {
        let request = request(LINE, &format!("{fields}{HOST}"));
        let answers = all_answers(&gate, request).await;
        let refusal = refusal("missing_credentials");
        let expected = match fields.strip_prefix("Authorization:").map(scheme) {
            None => refusal,
            Some(None) => refusal.saying("The Authorization header does not begin with Bearer."),
            Some(Some(scheme)) => refusal.saying(&format!(
                "The Authorization header has the scheme {scheme}, not Bearer."
            )),
        };
        assert_eq!(answers, [expected], "{fields}");
    }
}

/// Returns the scheme that is named in the refusal of this value.
fn scheme(value: &str) -> Option<&'static str> {
    let mut named = ["Basic", "Token"].into_iter();
    named.find(|scheme| value.starts_with(&format!(" {scheme} ")))
}

#[tokio::test]
async fn a_scheme_is_named_as_it_is_registered_and_a_key_that_begins_like_one_is_not() {
    let gate = Gate::start().await;
    for (value, sentence) in [
        (
            "tOKEN any-b64token/of+32.characters",
            "The Authorization header has the scheme Token, not Bearer.",
        ),
        (
            "Token/b64token.of+32.characters~or_more==",
            "The Authorization header does not begin with Bearer.",
        ),
    ] {
        let answers = all_answers(&gate, authorized_by(value.as_bytes())).await;
        let expected = refusal("missing_credentials").saying(sentence);
        assert_eq!(answers, [expected], "{value}");
    }
}

#[tokio::test]
async fn whatever_is_wrong_with_a_key_the_answer_is_the_same() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    for value in wrong_keys(&key) {
        let answers = all_answers(&gate, authorized_by(&value)).await;
        assert_eq!(answers, [refusal("invalid_key")]);
    }
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn the_scheme_may_be_written_in_any_case_and_with_several_spaces() {
    let gate = Gate::start().await;
    let key = gate.publish(Key::brought(PROVIDED)).await;
    for (served_before, scheme) in (0..).zip(["bearer ", "BEARER ", "BeArEr    "]) {
        let bearer = format!("{scheme}{}", key.text);
        let answers = all_answers(&gate, with_key(&bearer, LINE, HOST)).await;
        assert_eq!(answers, [served(119 - served_before)], "{scheme}");
    }
}

#[tokio::test]
async fn two_authorization_fields_are_refused_whatever_they_say() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for second in [&bearer, "Basic eDp5", ""] {
        let fields = format!("Authorization: {second}\r\n{HOST}");
        let answers = all_answers(&gate, with_key(&bearer, LINE, &fields)).await;
        assert_eq!(answers, [refusal("invalid_request")]);
    }
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn a_key_in_the_query_is_refused_under_any_name_and_never_logged() {
    let gate = Gate::start().await;
    let key = gate.key().await;
    let provided = gate.publish(Key::brought(PROVIDED)).await;
    let encoded = provided.text.replace('+', "%2B").replace('=', "%3D");
    let known = [format!("token={encoded}")];
    for query in queries(&key.text).into_iter().chain(known) {
        let line = format!("GET /api/v1/stress?{query} HTTP/1.1");
        for attack in [with_key(&key.bearer(), &line, HOST), request(&line, HOST)] {
            assert_eq!(all_answers(&gate, attack).await, [refusal("key_in_query")]);
        }
    }
    assert_eq!(gate.service.seen().len(), 0);
    // The last requests are logged after their answers.
    gate.process.stop(SOON).await.unwrap();
    let log = gate.process.log();
    assert!(log.contains("key_in_query"), "{log}");
    assert!(!log.contains(&key.text[17..]) && !log.contains(&provided.text));
}

#[tokio::test]
async fn a_key_that_is_not_in_force_is_refused_with_its_reason() {
    let at = |text| Timestamp::parse(text).unwrap();
    let (past, future) = (at("2020-01-01T00:00:00Z"), at("2120-01-01T00:00:00Z"));
    let gate = Gate::start().await;
    for (key, code) in [
        (Key::new().suspended(), "key_suspended"),
        (Key::new().expires(past), "key_expired"),
        (Key::new().not_before(future), "key_not_yet_valid"),
        (Key::new().retires(past), "invalid_key"),
    ] {
        let bearer = gate.publish(key).await.bearer();
        let answers = all_answers(&gate, with_key(&bearer, LINE, HOST)).await;
        assert_eq!(answers, [refusal(code)]);
    }
    assert_eq!(gate.service.seen().len(), 0);
}

#[tokio::test]
async fn a_plan_without_access_is_refused_before_the_method_and_the_path() {
    let gate = Gate::start().await;
    let free = gate.publish(Key::new().on_plan("Free")).await.bearer();
    for line in [LINE, "POST /api/v1/stress HTTP/1.1", "GET /x HTTP/1.1"] {
        let answers = all_answers(&gate, with_key(&free, line, HOST)).await;
        assert_eq!(answers, [refusal("plan_insufficient")], "{line}");
    }
}

/// Starts a gate that counts guesses by the address in `X-Forwarded-For`.
async fn behind_a_proxy() -> Gate {
    let trusted = Gate::builder().set("WATER_TRUSTED_PROXIES", "127.0.0.0/8");
    trusted.start().await
}

fn from(number: u8) -> String {
    format!("{HOST}X-Forwarded-For: 192.0.2.{number}\r\n")
}

#[tokio::test]
async fn the_41st_wrong_key_at_once_is_429_and_a_good_key_from_there_is_served() {
    let gate = behind_a_proxy().await;
    let (good, wrong) = (gate.key().await.bearer(), Key::new().bearer());
    // More than are allowed again while they are sent.
    let many = with_key(&wrong, LINE, &from(1)).repeat(200);
    let all = all_answers(&gate, many).await;
    let (first, rest) = all.split_at(40);
    assert!(first.iter().all(|answer| *answer == refusal("invalid_key")));
    let slowed = rest
        .iter()
        .filter(|answer| **answer == refusal("rate_limited"));
    let refused = rest
        .iter()
        .filter(|answer| **answer == refusal("invalid_key"));
    let slowed = slowed.count();
    assert!(slowed > 0 && slowed + refused.count() == 160, "{slowed}");
    for (bearer, number, expected) in [(&wrong, 2, refusal("invalid_key")), (&good, 1, served(119))]
    {
        let request = with_key(bearer, LINE, &from(number));
        assert_eq!(all_answers(&gate, request).await, [expected]);
    }
}

#[tokio::test]
async fn each_text_of_a_query_that_could_be_a_key_is_a_guess() {
    let gate = behind_a_proxy().await;
    let provided = gate
        .publish(Key::brought("as-weak-as-a-key-may-be-that-is-provided"))
        .await;
    // A request without a key whose query has this number of wrong texts, and then a right one.
    let guessing = |guesses: usize, number| {
        let wrong = format!("a={}&", "x".repeat(32)).repeat(guesses);
        let line = format!("GET /?{wrong}a={} HTTP/1.1", provided.text);
        request(&line, &from(number))
    };
    for (number, guesses, code) in [(1, 40, "missing_credentials"), (2, 39, "key_in_query")] {
        let answers = all_answers(&gate, guessing(guesses, number)).await;
        assert_eq!(answers, [refusal(code)], "{guesses}");
    }
    // More hits than are allowed again while they are sent: a hit is a guess too.
    let hits = all_answers(&gate, guessing(0, 3).repeat(200)).await;
    let (first, rest) = hits.split_at(40);
    assert!(
        first
            .iter()
            .all(|answer| *answer == refusal("key_in_query"))
    );
    assert!(rest.contains(&refusal("missing_credentials")));
    // With a valid key such texts are harmless.
    let key = gate.publish(Key::new().on_plan("Unlimited")).await;
    let line = "GET /api/v1/stress?utm_campaign=one-of-32-characters-and-some-more HTTP/1.1";
    let harmless = with_key(&key.bearer(), line, &from(3)).repeat(200);
    let answers = all_answers(&gate, harmless).await;
    let served = answers.iter().filter(|answer| answer.status() == "200");
    assert_eq!(served.count(), 200);
}
