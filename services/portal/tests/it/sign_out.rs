//! Signing out: by the reader, and by the identity provider.

use serde_json::{Value, json};
use water_harness::{Redis, SigningKey};
use water_kit::KeyStore;
use water_kit::portal::URL;

use crate::running::Running;

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// Posts a logout token, as the provider does: without cookies, from nowhere.
async fn post(portal: &Running, token: &str) -> u16 {
    let body = format!("logout_token={token}");
    let mut provider = portal.browser();
    let answer = provider.ask("POST", "/auth/back-channel", &[FORM], &body);
    answer.await.status
}

/// Posts this logout, signed.
async fn end(portal: &Running, logout: &Value) -> u16 {
    post(portal, &portal.key.sign(logout).unwrap()).await
}

/// Returns Anna's logout at the provider, of one session or of all.
fn logout(portal: &Running, of_all: bool) -> Value {
    let mut logout = portal.logout("once");
    if of_all {
        logout.as_object_mut().unwrap().remove("sid");
    }
    logout
}

#[tokio::test]
async fn a_reader_signs_out_here_and_is_sent_to_the_provider() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    let mut copy = anna.clone();
    let next = anna.sign_out().await;
    let issuer = portal.provider.issuer();
    let start = format!("{issuer}/logout?id_token_hint=ey");
    assert!(next.starts_with(&start), "{next}");
    assert!(next.contains("&post_logout_redirect_uri=https%3A%2F%2Fportal.example.org%2F&state="));
    assert!(anna.cookies.is_empty());
    assert!(
        !copy.is_signed_in().await,
        "the cookie itself opens nothing"
    );

    // A long token stays out of the address.
    let padding = json!("a".repeat(2000));
    let signed_in = anna.sign_in(&portal, |claims| claims["padding"] = padding);
    assert_eq!(signed_in.await.status, 303);
    let next = anna.sign_out().await;
    let is_short = next.contains("/logout?client_id=water-portal&");
    assert!(is_short && !next.contains("id_token_hint"), "{next}");
}

#[tokio::test]
async fn without_an_end_of_session_at_the_provider_the_reader_goes_home() {
    let portal = Running::start().await;
    portal
        .provider
        .describe("end_session_endpoint", Value::Null);
    let mut anna = portal.anna().await;
    assert_eq!(anna.sign_out().await, "/");
    assert_eq!(anna.sign_out().await, "/", "there is nothing left to end");
}

#[tokio::test]
async fn a_page_of_another_site_cannot_sign_anybody_out() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    for (fields, status) in [
        (&[][..], 403),
        (&[("Sec-Fetch-Site", "same-site"), ("Origin", URL)], 403),
        // An older browser, which names its origin only.
        (&[("Origin", URL)], 200),
    ] {
        assert!(anna.is_signed_in().await);
        let answer = anna.ask("POST", "/auth/sign-out", fields, "").await;
        assert_eq!(answer.status, status, "{fields:?}");
    }
}

#[tokio::test]
async fn the_provider_ends_a_session_once_and_all_sessions_of_a_subject() {
    let portal = Running::start().await;
    let (mut anna, mut other) = (portal.anna().await, portal.somebody().await);
    assert_eq!(end(&portal, &logout(&portal, false)).await, 200);
    assert!(!anna.is_signed_in().await);
    let mut again = portal.anna().await;
    assert_eq!(
        end(&portal, &logout(&portal, false)).await,
        400,
        "its jti is used"
    );
    assert!(again.is_signed_in().await);

    let mut two = portal.anna().await;
    let mut all = logout(&portal, true);
    all["jti"] = json!("another");
    assert_eq!(end(&portal, &all).await, 200);
    assert!(!again.is_signed_in().await && !two.is_signed_in().await);
    assert!(other.is_signed_in().await);

    // Clocks may differ by a minute: a token that has just expired is good, and used once, too.
    let mut expired = logout(&portal, false);
    (expired["jti"], expired["exp"]) = (json!("expired"), expired["iat"].clone());
    assert_eq!(end(&portal, &expired).await, 200);
    let mut anna = portal.anna().await;
    assert_eq!(end(&portal, &expired).await, 400);
    assert!(anna.is_signed_in().await);
}

#[tokio::test]
async fn a_logout_that_failed_for_want_of_redis_may_be_sent_again() {
    let redis = Redis::start().await.unwrap();
    let portal = Running::start_with(&KeyStore::on(&redis), &[]).await;
    let mut anna = portal.anna().await;
    let logout = logout(&portal, false);
    let may = async |right: &str| redis.command(&["ACL", "SETUSER", "default", right]).await;
    may("-zadd").await.unwrap();
    assert_eq!(end(&portal, &logout).await, 503);
    may("+zadd").await.unwrap();
    assert!(anna.is_signed_in().await);
    assert_eq!(end(&portal, &logout).await, 200);
    assert!(!anna.is_signed_in().await);
}

#[tokio::test]
async fn a_sign_in_that_the_provider_ends_before_its_reader_is_back_leaves_no_session() {
    for of_all in [false, true] {
        let portal = Running::start().await;
        let mut anna = portal.browser();
        let begun = anna.begin("/").await;
        assert_eq!(end(&portal, &logout(&portal, of_all)).await, 200);
        let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
        assert_eq!(anna.finish(&portal, &begun, &token).await.status, 400);
        assert!(!anna.is_signed_in().await);
        assert_eq!(portal.sign_ins().await["ended_meanwhile"], 1);
        assert!(portal.anna().await.is_signed_in().await, "she begins again");
    }
}

/// The claims have their rows in the tests of the code.
#[tokio::test]
async fn a_logout_token_that_fails_a_check_ends_nothing() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    let stranger = SigningKey::elliptic("first").unwrap();
    let mut late = portal.logout("once");
    late["exp"] = json!(1);
    for (name, token) in [
        (
            "another key",
            stranger.sign(&portal.logout("once")).unwrap(),
        ),
        ("an ID token", portal.key.sign(&portal.claims("n")).unwrap()),
        ("late", portal.key.sign(&late).unwrap()),
        ("no token", "x".to_owned()),
        ("two", "a&logout_token=b".to_owned()),
    ] {
        assert_eq!(post(&portal, &token).await, 400, "{name}");
    }
    let json = [("Content-Type", "application/json")];
    let mut provider = portal.browser();
    let answer = provider.ask("POST", "/auth/back-channel", &json, "logout_token=x");
    assert_eq!(answer.await.status, 415);
    assert!(anna.is_signed_in().await);
}
