//! Sessions: what opens one, what does not, and what Redis knows of it.

use tokio::time::Instant;
use water_harness::Redis;
use water_kit::{Browser, KeyStore};

use crate::running::Running;

const SESSION: &str = "__Host-water_session";

/// Milliseconds after its last use until an idle session ends.
const IDLE: i64 = 1_800_000;

/// Returns the status of a question for an account's keys; 503 is the API server, which is away.
async fn keys(browser: &mut Browser, account: &str) -> u16 {
    let target = format!("/account/v1/accounts/{account}/keys");
    browser.get(&target).await.status
}

#[tokio::test]
async fn only_the_whole_cookie_sent_once_opens_a_session() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    assert_eq!(keys(&mut anna, "acme").await, 503);
    let cookie = anna.cookies[SESSION].clone();
    let mut first = cookie.clone();
    first.replace_range(..1, if cookie.starts_with('A') { "B" } else { "A" });
    for bad in [
        "",
        "x",
        &cookie[1..],
        &first,
        &format!("{cookie}x"),
        &"A".repeat(43),
    ] {
        let mut browser = portal.browser();
        browser.cookies.insert(SESSION.to_owned(), bad.to_owned());
        assert_eq!(keys(&mut browser, "acme").await, 401, "{bad}");
    }
    let mut twice = portal.browser();
    let both = format!("{SESSION}={cookie}; {SESSION}={cookie}");
    let answer = twice
        .ask(
            "GET",
            "/account/v1/accounts/acme/keys",
            &[("Cookie", &both)],
            "",
        )
        .await;
    assert_eq!(answer.status, 401);
    assert!(answer.header("www-authenticate").is_some());
}

#[tokio::test]
async fn an_account_of_others_is_not_found_whatever_is_asked_of_it() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    assert_eq!(keys(&mut anna, "globex").await, 503);
    for account in ["initech", "acme2", "ACME", "acm%65", "..", "acme%2F", "-"] {
        assert_eq!(keys(&mut anna, account).await, 404, "{account}");
    }
}

#[tokio::test]
async fn each_sign_in_has_a_cookie_of_its_own_and_ends_what_the_old_one_opened() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    let mut old = anna.clone();
    anna.sign_in(&portal, |_| {}).await;
    assert_ne!(anna.cookies[SESSION], old.cookies[SESSION]);
    assert!(anna.is_signed_in().await);
    assert!(!old.is_signed_in().await);
}

#[tokio::test]
async fn the_eleventh_browser_of_a_person_signs_the_first_one_out() {
    let portal = Running::start().await;
    let mut browsers = Vec::new();
    for _ in 0..11 {
        browsers.push(portal.anna().await);
    }
    for (number, browser) in browsers.iter_mut().enumerate() {
        assert_eq!(browser.is_signed_in().await, number > 0, "{number}");
    }
}

#[tokio::test]
async fn redis_holds_neither_the_cookie_nor_a_word_of_the_claims() {
    let redis = Redis::start().await.unwrap();
    let portal = Running::start_with(&KeyStore::on(&redis), &[]).await;
    let anna = portal.anna().await;
    let dump = redis.dump().await.unwrap();
    let holds = |text: &str| dump.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(holds("wd:web:"), "the dump is one of sessions");
    for text in [
        anna.cookies[SESSION].as_str(),
        "anna",
        "Anna",
        "acme",
        "s-1",
        "eyJ",
    ] {
        assert!(!holds(text), "{text}");
    }
}

#[tokio::test]
async fn a_session_asks_240_times_and_others_go_on() {
    let portal = Running::start().await;
    let mut other = portal.anna().await;
    for target in ["/account/v1/session", "/account/v1/accounts/acme/usage"] {
        let mut anna = portal.anna().await;
        let (begun, mut asked) = (Instant::now(), 0);
        let refused = loop {
            let answer = anna.get(target).await;
            if answer.status == 429 {
                break answer;
            }
            asked += 1;
            // The bucket fills by four a second, on a machine however busy.
            let most = 241.0 + 4.0 * begun.elapsed().as_secs_f64();
            assert!(f64::from(asked) <= most, "{target}: {asked} and no end");
            assert!(asked < 2_400, "asked too slowly to empty the bucket");
        };
        assert!(asked >= 240, "{target}: {asked}");
        assert!(refused.header("retry-after").is_some());
        assert!(other.is_signed_in().await);
    }
}

#[tokio::test]
async fn a_poll_does_not_put_off_the_end_of_an_idle_session() {
    let redis = Redis::start().await.unwrap();
    let portal = Running::start_with(&KeyStore::on(&redis), &[]).await;
    let mut anna = portal.anna().await;
    let listed = redis.command(&["KEYS", "wd:web:*:s"]).await.unwrap();
    let key = listed
        .lines()
        .find(|line| line.starts_with("wd:web:"))
        .unwrap()
        .to_owned();
    let left = async || {
        let left = redis.command(&["PTTL", &key]).await.unwrap();
        left.trim().trim_start_matches(':').parse::<i64>().unwrap()
    };
    redis.command(&["PEXPIRE", &key, "600000"]).await.unwrap();
    assert!(anna.is_signed_in().await);
    anna.get("/account/v1/accounts/acme/quota").await;
    let poll = [("X-Poll", "1")];
    anna.ask("GET", "/account/v1/accounts/acme/keys", &poll, "")
        .await;
    assert!(left().await <= 600_000);
    let used = Instant::now();
    anna.get("/account/v1/accounts/acme/keys").await;
    let left = left().await;
    let since = 1_000 * (1 + used.elapsed().as_secs() as i64);
    assert!((IDLE - since..=IDLE).contains(&left), "{left}");
}
