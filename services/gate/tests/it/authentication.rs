//! Who gets in, and what everybody else is told. Attacks are in `attacks`.

use water_harness::{Answer, Clock, Redis, wait_until};

use crate::site::{Key, SOON, Site, future, is, past, problem};

const TARGET: &str = "/api/v1/stress";

/// `WWW-Authenticate` beyond the realm.
fn challenge(answer: &Answer) -> &str {
    let challenge = answer.header("www-authenticate").unwrap();
    challenge
        .strip_prefix(r#"Bearer realm="water-data""#)
        .unwrap()
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
    let clock = Clock::new().unwrap();
    let redis = Redis::start_on(&clock).await.unwrap();
    let site = Site::start_unready(&redis, &[]).await;
    site.ready().await;
    let now = site.directory.leases().await.unwrap().now.as_millis();
    let at = |millis| water_domain::Timestamp::from_millis(now + millis).unwrap();
    let key = site
        .publish(Key::new().not_before(at(-1)).expires(at(60_000)))
        .await;
    assert_eq!(site.get(TARGET, &key).await.status, 200);
    // All but the last seconds pass at once.
    clock.set(55).unwrap();
    let expired = async || {
        let answer = site.get(TARGET, &key).await;
        anyhow::ensure!(answer.status == 401, "{answer:?}");
        Ok(answer)
    };
    let answer = wait_until("the key's end", SOON, expired).await.unwrap();
    assert_eq!(problem(&answer), is(401, "key_expired"));
    let ended = site.directory.leases().await.unwrap().now.as_millis();
    assert!(
        ended >= now + 60_000,
        "refused {} ms too early",
        now + 60_000 - ended
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
