//! Malformed credentials, and keys where no key belongs.

use super::{HOST, LINE, request, with_key};
use crate::site::{Key, Site, future, past};
use crate::whole::{refusal, served};

/// Fields without a bearer, with the key wherever a client might think to put it.
fn no_bearer(key: &str) -> Vec<String> {
    let elsewhere = [
        "X-API-Key: ",
        "X-Authorization: Bearer ",
        "Proxy-Authorization: Bearer ",
        "Cookie: api-key=",
        "Authorization: ",
        "Authorization: Token ",
        "Authorization: Bearer2 ",
        "Authorization: Basic eDp5, Bearer ",
    ];
    let with_the_key = elsewhere.iter().map(|field| format!("{field}{key}\r\n"));
    let without = ["", "Authorization:\r\n", "Authorization: Basic eDp5\r\n"];
    with_the_key.chain(without.map(str::to_owned)).collect()
}

/// What follows the name `Authorization: ` where the scheme is right and the key is not.
fn wrong_keys(good: &str) -> Vec<Vec<u8>> {
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
        format!("Bearer {}", unknown.hash()),
        format!("Bearer {good}\u{e9}"),
        format!("Bearer {}", "x".repeat(4096)),
    ];
    let bytes = [b"Bearer ", good.as_bytes(), b"\xff"].concat();
    let texts = texts.map(String::into_bytes);
    texts.into_iter().chain([bytes]).collect()
}

/// Queries with the key in them, under any name.
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
    [
        LINE.as_bytes(),
        b"\r\nAuthorization: ",
        value,
        end.as_bytes(),
    ]
    .concat()
}

/// All of this file's inputs, made from a good key.
pub fn inputs(bearer: &str) -> Vec<Vec<u8>> {
    let key = bearer.strip_prefix("Bearer ").unwrap();
    let no_bearer = no_bearer(key);
    let no_bearer = no_bearer
        .iter()
        .map(|fields| request(LINE, &format!("{fields}{HOST}")));
    let wrong = wrong_keys(key);
    let wrong = wrong.iter().map(|value| authorized_by(value));
    let queries = queries(key).map(|query| {
        let line = format!("GET /api/v1/stress?{query} HTTP/1.1");
        with_key(bearer, &line, HOST)
    });
    let twice = with_key(bearer, LINE, &format!("Authorization: {bearer}\r\n{HOST}"));
    no_bearer
        .chain(wrong)
        .chain(queries)
        .chain([twice])
        .collect()
}

#[tokio::test]
async fn without_a_bearer_credentials_are_missing_wherever_the_key_stands() {
    let site = Site::start().await;
    let key = site.key().await;
    for fields in no_bearer(&key.text) {
        let answers = site
            .answers(request(LINE, &format!("{fields}{HOST}")))
            .await;
        assert_eq!(answers, [refusal("missing_credentials")], "{fields}");
    }
}

#[tokio::test]
async fn whatever_is_wrong_with_a_key_the_answer_is_the_same() {
    let site = Site::start().await;
    let key = site.key().await;
    let stored = format!("Bearer {}", key.hash()).into_bytes();
    for value in wrong_keys(&key.text).into_iter().chain([stored]) {
        let answers = site.answers(authorized_by(&value)).await;
        assert_eq!(answers, [refusal("invalid_key")]);
    }
    assert_eq!(site.service.seen().len(), 0);
}

#[tokio::test]
async fn the_scheme_may_be_written_in_any_case_and_with_several_spaces() {
    let site = Site::start().await;
    let key = site.key().await;
    for (served_before, scheme) in (0..).zip(["bearer ", "BEARER ", "Bearer    "]) {
        let bearer = format!("{scheme}{}", key.text);
        let answers = site.answers(with_key(&bearer, LINE, HOST)).await;
        assert_eq!(answers, [served(119 - served_before)], "{scheme}");
    }
}

#[tokio::test]
async fn two_authorization_fields_are_refused_whatever_they_say() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    for second in [&bearer, "Basic eDp5", ""] {
        let fields = format!("Authorization: {second}\r\n{HOST}");
        let answers = site.answers(with_key(&bearer, LINE, &fields)).await;
        assert_eq!(answers, [refusal("invalid_request")]);
    }
    assert_eq!(site.service.seen().len(), 0);
}

#[tokio::test]
async fn a_key_in_the_query_is_refused_under_any_name_and_never_logged() {
    let site = Site::start().await;
    let key = site.key().await;
    let brought = site
        .publish(Key::brought("brought-along-and-hard-to-recognise"))
        .await;
    let known = [format!("token={}", brought.text)];
    for query in queries(&key.text).into_iter().chain(known) {
        let line = format!("GET /api/v1/stress?{query} HTTP/1.1");
        for attack in [with_key(&key.bearer(), &line, HOST), request(&line, HOST)] {
            assert_eq!(site.answers(attack).await, [refusal("key_in_query")]);
        }
    }
    let log = site.gate.log();
    assert!(!log.contains(&key.text[17..]) && !log.contains(&brought.text));
    assert_eq!(site.service.seen().len(), 0);
}

#[tokio::test]
async fn a_key_outside_its_time_is_refused_by_name() {
    let site = Site::start().await;
    for (key, code) in [
        (Key::new().expires(past()), "key_expired"),
        (Key::new().not_before(future()), "key_not_yet_valid"),
        (Key::new().retires(past()), "invalid_key"),
    ] {
        let bearer = site.publish(key).await.bearer();
        let answers = site.answers(with_key(&bearer, LINE, HOST)).await;
        assert_eq!(answers, [refusal(code)]);
    }
}

#[tokio::test]
async fn a_key_revoked_while_its_connection_stays_warm_is_refused_at_once() {
    let site = Site::start().await;
    let key = site.key().await;
    let mut warm = site.connect().await;
    warm.send(with_key(&key.bearer(), LINE, HOST))
        .await
        .unwrap();
    assert_eq!(warm.answer().await.unwrap().status, 200);
    site.revoke(&key).await;
    warm.send(with_key(&key.bearer(), LINE, HOST))
        .await
        .unwrap();
    warm.finish().await.unwrap();
    let rest = warm.closed().await.unwrap();
    assert_eq!(crate::whole::read(&rest), [refusal("invalid_key")]);
}

#[tokio::test]
async fn the_41st_wrong_key_at_once_is_429_and_a_good_key_from_there_is_served() {
    let site = Site::start().await;
    let (good, wrong) = (site.key().await, Key::new());
    // More than come back while they are sent.
    let many = with_key(&wrong.bearer(), LINE, HOST).repeat(200);
    let answers = site.answers(many).await;
    let slowed = answers
        .iter()
        .filter(|answer| **answer == refusal("rate_limited"));
    let slowed = slowed.count();
    let as_ever = answers
        .iter()
        .filter(|answer| **answer == refusal("invalid_key"));
    assert_eq!(as_ever.count() + slowed, 200);
    assert!((1..=160).contains(&slowed), "{slowed} of 200 were slowed");
    let (first, _) = answers.split_at(40);
    assert!(first.iter().all(|answer| *answer == refusal("invalid_key")));
    let answers = site.answers(with_key(&good.bearer(), LINE, HOST)).await;
    assert_eq!(answers, [served(119)]);
}

/// A request without a key whose query has `guesses` texts that could be keys, and `last` after them.
fn guessing(guesses: usize, last: &Key) -> Vec<u8> {
    let wrong = format!("a={}&", "x".repeat(32)).repeat(guesses);
    request(&format!("GET /?{wrong}a={} HTTP/1.1", last.text), HOST)
}

#[tokio::test]
async fn the_41st_guess_at_once_in_a_query_is_not_answered() {
    for (guesses, code) in [(39, "key_in_query"), (40, "missing_credentials")] {
        let site = Site::start().await;
        let brought = Key::brought("brought-along-and-as-weak-as-it-may-be");
        let brought = site.publish(brought).await;
        let answers = site.answers(guessing(guesses, &brought)).await;
        assert_eq!(answers, [refusal(code)], "{guesses}");
    }
}

#[tokio::test]
async fn a_hit_in_a_query_is_a_guess_too() {
    let site = Site::start().await;
    let brought = Key::brought("brought-along-and-as-weak-as-it-may-be");
    let brought = site.publish(brought).await;
    // More than come back while they are sent.
    let answers = site.answers(guessing(0, &brought).repeat(200)).await;
    let (first, rest) = answers.split_at(40);
    assert!(
        first
            .iter()
            .all(|answer| *answer == refusal("key_in_query"))
    );
    assert!(rest.contains(&refusal("missing_credentials")));
}

#[tokio::test]
async fn a_good_key_is_served_however_often_its_query_looks_like_a_key() {
    let site = Site::start().await;
    let key = site.publish(Key::new().on_plan("Unlimited")).await;
    let harmless = "campaign=one-of-32-characters-and-some-more";
    let line = format!("GET /api/v1/stress?{harmless} HTTP/1.1");
    let answers = site
        .answers(with_key(&key.bearer(), &line, HOST).repeat(200))
        .await;
    let served = answers.iter().filter(|answer| answer.status() == "200");
    assert_eq!(served.count(), 200);
}
