//! Signing out: by the reader, and by the identity provider.

use serde_json::{Value, json};
use water_harness::{Redis, SigningKey};

use crate::site::*;

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// Posts a logout token, as the provider does: without cookies, from nowhere.
async fn post(site: &Site, token: &str) -> u16 {
    let body = format!("logout_token={token}");
    site.browser()
        .ask("POST", "/auth/back-channel", &[FORM], &body)
        .await
        .status
}

#[tokio::test]
async fn a_reader_signs_out_here_and_is_sent_to_the_provider() {
    let site = Site::start().await;
    let mut anna = site.anna().await;
    let mut copy = anna.clone();
    let next = anna.sign_out().await;
    assert!(
        next.starts_with(&format!(
            "{}/logout?id_token_hint=ey",
            site.provider.issuer()
        )),
        "{next}"
    );
    assert!(next.contains("&post_logout_redirect_uri=https%3A%2F%2Fportal.example.org%2F&state="));
    assert!(anna.cookies.is_empty());
    assert!(
        !copy.is_signed_in().await,
        "the cookie itself opens nothing any more"
    );
}

#[tokio::test]
async fn a_long_token_stays_out_of_the_address() {
    let site = Site::start().await;
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    let mut claims = site.claims(&begun.nonce);
    claims["padding"] = json!("a".repeat(2000));
    let token = site.key.sign(&claims).unwrap();
    assert_eq!(browser.finish(&site, &begun, &token).await.status, 303);
    let next = browser.sign_out().await;
    assert!(
        next.contains("/logout?client_id=water-portal&") && !next.contains("id_token_hint"),
        "{next}"
    );
}

#[tokio::test]
async fn without_an_end_of_session_at_the_provider_the_reader_goes_home() {
    let site = Site::start().await;
    site.provider.describe("end_session_endpoint", Value::Null);
    let mut anna = site.anna().await;
    assert_eq!(anna.sign_out().await, "/");
    assert_eq!(anna.sign_out().await, "/", "there is nothing left to end");
}

#[tokio::test]
async fn a_page_of_another_site_cannot_sign_anybody_out() {
    let site = Site::start().await;
    let mut anna = site.anna().await;
    let refused: [&[(&str, &str)]; 4] = [
        &[],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site"), ("Origin", URL)],
        &[("Origin", "https://evil.example")],
    ];
    for fields in refused {
        let answer = anna.ask("POST", "/auth/sign-out", fields, "").await;
        assert_eq!(answer.status, 403, "{fields:?}");
    }
    assert!(anna.is_signed_in().await);
    let answer = anna
        .ask("POST", "/auth/sign-out", &[("Origin", URL)], "")
        .await;
    assert_eq!(
        answer.status, 200,
        "an older browser, which says its origin only"
    );
}

#[tokio::test]
async fn the_provider_ends_what_came_of_its_session() {
    let site = Site::start().await;
    let mut anna = site.anna().await;
    let token = site.key.sign(&site.logout("once")).unwrap();
    assert_eq!(post(&site, &token).await, 200);
    assert!(!anna.is_signed_in().await);
    let mut again = site.anna().await;
    assert_eq!(post(&site, &token).await, 400, "its jti is used");
    assert!(again.is_signed_in().await);
}

#[tokio::test]
async fn a_logout_that_failed_for_want_of_redis_may_be_sent_again() {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_with(&redis.url(), &[]).await;
    let mut anna = site.anna().await;
    let token = site.key.sign(&site.logout("once")).unwrap();
    let may = async |right: &str| redis.command(&["ACL", "SETUSER", "default", right]).await;
    may("-zadd").await.unwrap();
    assert_eq!(post(&site, &token).await, 503);
    may("+zadd").await.unwrap();
    assert!(anna.is_signed_in().await);
    assert_eq!(post(&site, &token).await, 200);
    assert!(!anna.is_signed_in().await);
}

#[tokio::test]
async fn the_provider_ends_all_sessions_of_a_subject() {
    let site = Site::start().await;
    let (mut one, mut two) = (site.anna().await, site.anna().await);
    let mut other = site.browser();
    let begun = other.begin("/").await;
    let mut claims = site.claims(&begun.nonce);
    (claims["sub"], claims["sid"]) = (json!("bert"), json!("s-2"));
    let token = site.key.sign(&claims).unwrap();
    other.finish(&site, &begun, &token).await;
    let mut logout = site.logout("once");
    logout.as_object_mut().unwrap().remove("sid");
    assert_eq!(post(&site, &site.key.sign(&logout).unwrap()).await, 200);
    assert!(!one.is_signed_in().await && !two.is_signed_in().await);
    assert!(other.is_signed_in().await);
}

#[tokio::test]
async fn a_sign_in_that_the_provider_ends_before_its_reader_is_back_leaves_no_session() {
    for by_subject in [false, true] {
        let site = Site::start().await;
        let mut anna = site.browser();
        let begun = anna.begin("/").await;
        let mut logout = site.logout("once");
        if by_subject {
            logout.as_object_mut().unwrap().remove("sid");
        }
        assert_eq!(post(&site, &site.key.sign(&logout).unwrap()).await, 200);
        let token = site.key.sign(&site.claims(&begun.nonce)).unwrap();
        assert_eq!(anna.finish(&site, &begun, &token).await.status, 400);
        assert!(!anna.is_signed_in().await);
        assert_eq!(site.sign_ins().await["ended_meanwhile"], 1);
        assert!(site.anna().await.is_signed_in().await, "she begins anew");
    }
}

#[tokio::test]
async fn a_logout_token_that_fails_any_check_ends_nothing() {
    let site = Site::start().await;
    let mut anna = site.anna().await;
    let stranger = SigningKey::elliptic("first").unwrap();
    let changed = |name: &str, value: Value| {
        let mut claims = site.logout("once");
        claims[name] = value;
        site.key.sign(&claims).unwrap()
    };
    let rows = [
        ("another key", stranger.sign(&site.logout("once")).unwrap()),
        ("an ID token", site.key.sign(&site.claims("n")).unwrap()),
        ("with a nonce", changed("nonce", json!("n"))),
        ("another event", changed("events", json!({"other": {}}))),
        ("another audience", changed("aud", json!("other"))),
        (
            "another issuer",
            changed("iss", json!("https://evil.example")),
        ),
        ("late", changed("exp", json!(epoch_seconds() - 61))),
        ("without an id", changed("jti", json!(""))),
        ("no token", "x".to_owned()),
        ("two", "a&logout_token=b".to_owned()),
    ];
    for (name, token) in rows {
        assert_eq!(post(&site, &token).await, 400, "{name}");
    }
    let body = "logout_token=x";
    let json = [("Content-Type", "application/json")];
    let answer = site
        .browser()
        .ask("POST", "/auth/back-channel", &json, body)
        .await;
    assert_eq!(answer.status, 415);
    assert!(anna.is_signed_in().await);
}
