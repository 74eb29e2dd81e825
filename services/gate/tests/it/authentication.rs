//! Who gets in: every row of api.md's authentication table and of the attacks on it.

use water_harness::{Answer, wait_until};

use crate::site::{Key, SOON, Site, future, is, past, problem};

const TARGET: &str = "/api/v1/stress";

async fn with(site: &Site, authorization: &str) -> Answer {
    site.request("GET", TARGET, &[("Authorization", authorization)])
        .await
}

/// `WWW-Authenticate` beyond the realm.
fn challenge(answer: &Answer) -> &str {
    let challenge = answer.header("www-authenticate").unwrap();
    challenge
        .strip_prefix(r#"Bearer realm="water-data""#)
        .unwrap()
}

#[tokio::test]
async fn a_good_key_is_let_in_however_its_scheme_is_written() {
    let site = Site::start().await;
    let key = site.key().await;
    for scheme in ["Bearer", "bearer", "BEARER", "Bearer   "] {
        let answer = with(&site, &format!("{scheme} {}", key.text)).await;
        assert_eq!(answer.status, 200, "{scheme}: {answer:?}");
    }
}

#[tokio::test]
async fn a_key_that_was_brought_by_its_hash_is_let_in() {
    let site = Site::start().await;
    let key = site
        .publish(Key::brought("any-b64token/of+32.characters~or_more=="))
        .await;
    assert_eq!(site.get(TARGET, &key).await.status, 200);
}

#[tokio::test]
async fn without_a_bearer_credentials_are_missing() {
    let site = Site::start().await;
    let key = site.key().await;
    let none = site.request("GET", TARGET, &[]).await;
    assert_eq!(
        (problem(&none), challenge(&none)),
        (is(401, "missing_credentials"), "")
    );
    for other in ["Basic eDp5", &format!("Token {}", key.text), &key.text, ""] {
        let answer = with(&site, other).await;
        assert_eq!(problem(&answer), is(401, "missing_credentials"), "{other}");
    }
}

#[tokio::test]
async fn a_key_elsewhere_than_in_authorization_is_no_credential() {
    let site = Site::start().await;
    let key = site.key().await;
    for name in ["X-API-Key", "Proxy-Authorization", "X-Authorization"] {
        let answer = site.request("GET", TARGET, &[(name, &key.bearer())]).await;
        assert_eq!(problem(&answer), is(401, "missing_credentials"), "{name}");
    }
    let cookie = format!("api-key={}", key.text);
    let answer = site.request("GET", TARGET, &[("Cookie", &cookie)]).await;
    assert_eq!(problem(&answer), is(401, "missing_credentials"));
}

#[tokio::test]
async fn whatever_is_wrong_with_a_key_the_answer_is_the_same() {
    let site = Site::start().await;
    let good = site.key().await.text;
    let (head, last) = good.split_at(65);
    let other_last = if last == "0" { "1" } else { "0" };
    let unknown = Key::new().text;
    let wrong_secret = format!("{}{}", &good[..17], &unknown[17..]);
    let hash = site.key().await.hash().to_string();
    let wrong = [
        "Bearer".to_owned(),
        format!("Bearer\t{good}"),
        format!("Bearer {good}, Bearer {good}"),
        format!("Bearer {head}{other_last}"),
        format!("Bearer {}", good.to_lowercase()),
        format!("Bearer {head}"),
        format!("Bearer {good}0"),
        format!("Bearer {unknown}"),
        format!("Bearer {wrong_secret}"),
        format!("Bearer {hash}"),
        format!("Bearer {good}é"),
    ];
    let mut bodies = Vec::new();
    for authorization in &wrong {
        let answer = site
            .request(
                "GET",
                TARGET,
                &[
                    ("Authorization", authorization),
                    ("X-Request-Id", "same-for-all"),
                ],
            )
            .await;
        assert_eq!(problem(&answer), is(401, "invalid_key"), "{authorization}");
        assert_eq!(challenge(&answer), r#", error="invalid_token""#);
        bodies.push(answer.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
}

#[tokio::test]
async fn who_tries_wrong_keys_is_slowed_and_a_good_key_from_there_is_served() {
    let site = Site::start().await;
    let (good, wrong) = (site.key().await, Key::new());
    let mut client = site.connect().await;
    let slowed = loop {
        let answer = client.get(TARGET, &wrong.text).await.unwrap();
        if problem(&answer) != is(401, "invalid_key") {
            break answer;
        }
    };
    assert_eq!(problem(&slowed), is(429, "rate_limited"));
    assert_eq!(slowed.header("retry-after"), Some("1"));
    assert_eq!(slowed.header("ratelimit"), None);
    assert_eq!(client.get(TARGET, &good.text).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_trusted_proxy_says_whose_failure_it_is() {
    let site = Site::start_with(&[("WATER_TRUSTED_PROXIES", "127.0.0.0/8")]).await;
    let wrong = Key::new().bearer();
    let mut client = site.connect().await;
    for number in 0..60 {
        let address = format!("192.0.2.{number}");
        let fields = [
            ("Authorization", wrong.as_str()),
            ("X-Forwarded-For", &address),
        ];
        let answer = client.request("GET", TARGET, &fields).await.unwrap();
        assert_eq!(problem(&answer), is(401, "invalid_key"), "{address}");
    }
}

#[tokio::test]
async fn two_authorization_fields_are_refused_even_when_identical() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    let fields = [
        ("Authorization", bearer.as_str()),
        ("Authorization", bearer.as_str()),
    ];
    let answer = site.request("GET", TARGET, &fields).await;
    assert_eq!(problem(&answer), is(401, "invalid_request"));
    assert_eq!(challenge(&answer), r#", error="invalid_request""#);
}

#[tokio::test]
async fn a_key_out_of_force_says_why() {
    let site = Site::start().await;
    let cases = [
        (Key::new().suspended(), "key_suspended"),
        (Key::new().expires(past()), "key_expired"),
        (Key::new().not_before(future()), "key_not_yet_valid"),
        (Key::new().retires(past()), "invalid_key"),
    ];
    for (key, code) in cases {
        let answer = site.get(TARGET, &site.publish(key).await).await;
        assert_eq!(problem(&answer), is(401, code));
        assert_eq!(challenge(&answer), r#", error="invalid_token""#);
    }
    assert_eq!(site.service.seen().len(), 0);
}

#[tokio::test]
async fn a_key_is_good_from_its_beginning_to_its_end_on_the_stores_clock() {
    let site = Site::start().await;
    let now = site.directory.leases().await.unwrap().now.as_millis();
    let at = |millis| water_domain::Timestamp::from_millis(now + millis).unwrap();
    let key = site
        .publish(Key::new().not_before(at(-1)).expires(at(1500)))
        .await;
    assert_eq!(site.get(TARGET, &key).await.status, 200);
    let expired = async || {
        let answer = site.get(TARGET, &key).await;
        anyhow::ensure!(answer.status == 401, "{answer:?}");
        Ok(answer)
    };
    let answer = wait_until("the key's end", SOON, expired).await.unwrap();
    assert_eq!(problem(&answer), is(401, "key_expired"));
    let ended = site.directory.leases().await.unwrap().now.as_millis();
    assert!(
        ended >= now + 1500,
        "refused {} ms too early",
        now + 1500 - ended
    );
}

#[tokio::test]
async fn a_plan_without_access_is_403_and_names_the_plan_that_has_it() {
    let site = Site::start().await;
    let key = site.publish(Key::new().on_plan("Free")).await;
    let answer = site.get(TARGET, &key).await;
    assert_eq!(problem(&answer), is(403, "plan_insufficient"));
    assert_eq!(challenge(&answer), r#", error="insufficient_scope""#);
    assert_eq!(
        answer.json().unwrap()["title"],
        "API access requires the Enterprise plan"
    );
    assert_eq!(answer.header("ratelimit"), None);
}

#[tokio::test]
async fn a_change_is_seen_by_the_next_request_of_a_warm_connection() {
    let site = Site::start().await;
    let key = site.key().await;
    let mut warm = site.connect().await;
    assert_eq!(warm.get(TARGET, &key.text).await.unwrap().status, 200);
    site.publish(key.clone().suspended()).await;
    let suspended = warm.get(TARGET, &key.text).await.unwrap();
    assert_eq!(problem(&suspended), is(401, "key_suspended"));
    site.publish(key.clone()).await;
    assert_eq!(warm.get(TARGET, &key.text).await.unwrap().status, 200);
    site.revoke(&key).await;
    let revoked = warm.get(TARGET, &key.text).await.unwrap();
    assert_eq!(problem(&revoked), is(401, "invalid_key"));
}

#[tokio::test]
async fn a_key_in_the_query_is_refused_under_any_name_and_never_logged() {
    let site = Site::start().await;
    let key = site.key().await;
    let brought = site
        .publish(Key::brought("brought-along-and-hard-to-recognise"))
        .await;
    for query in [
        format!("api_key={}", key.text),
        key.text.clone(),
        format!("dept=34&Authorization=Bearer%20{}", key.text),
        format!("x=%77{}", &key.text[1..]),
        format!("token={}", brought.text),
    ] {
        let answer = site.get(&format!("{TARGET}?{query}"), &key).await;
        assert_eq!(problem(&answer), is(400, "key_in_query"));
    }
    let secret = &key.text[17..];
    assert!(!site.gate.log().contains(secret) && !site.gate.log().contains(&brought.text));
    assert_eq!(site.service.seen().len(), 0);
}
