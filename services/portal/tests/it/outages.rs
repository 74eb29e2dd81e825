//! Outages: they cost the requests that need the lost part, and nothing else.

use anyhow::ensure;
use serde_json::json;
use water_harness::{Redis, SigningKey, wait_until};
use water_kit::portal::OWN;
use water_kit::{KeyStore, SOON};

use crate::running::Running;

#[tokio::test]
async fn fault_43_redis_away_and_back_keeps_everybody_signed_in() {
    let redis = Redis::start().await.unwrap();
    let portal = Running::start_with(&KeyStore::on(&redis), &[]).await;
    let mut anna = portal.anna().await;
    redis.pause().unwrap();
    let kept = anna.cookies.clone();
    let requests = [
        ("GET", "/account/v1/session"),
        ("GET", "/account/v1/accounts/acme/keys"),
        ("POST", "/auth/sign-out"),
    ];
    for (method, target) in requests {
        let answer = anna.ask(method, target, &[OWN], "").await;
        assert_eq!(answer.status, 503, "{target}");
        assert!(answer.header("retry-after").is_some(), "{target}");
        assert_eq!(anna.cookies, kept, "{target}");
    }
    // Without the session nobody knows whether this is a second return of its reader.
    let answer = anna.back("of-no-sign-in", "used").await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.header("retry-after"), Some("2"));
    assert_eq!(anna.cookies, kept);
    let stranger = portal.browser().back("of-no-sign-in", "used").await;
    assert_eq!(stranger.status, 400, "it needs no Redis");
    assert!(portal.is_ready(), "somebody has to say so");
    assert_eq!(anna.get("/docs").await.status, 200, "pages need no Redis");
    redis.resume().unwrap();
    let back = async || {
        let answer = anna.get("/account/v1/session").await;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    };
    wait_until("an answer with Redis back", SOON, back)
        .await
        .unwrap();
    assert!(anna.is_signed_in().await);
}

#[tokio::test]
async fn fault_43_a_sign_in_without_redis_says_so_on_a_page() {
    let redis = Redis::start().await.unwrap();
    let portal = Running::start_with(&KeyStore::on(&redis), &[]).await;
    let mut browser = portal.browser();
    redis.pause().unwrap();
    let answer = browser.sign_in(&portal, |_| {}).await;
    assert_eq!(answer.status, 503);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("text/html"), "{answer:?}");
}

#[tokio::test]
async fn fault_44_the_provider_away_stops_sign_ins_and_nothing_else() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    let mut browser = portal.browser();
    let begun = browser.begin("/").await;
    portal.provider.set_away(true);
    let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
    let answer = browser.finish(&portal, &begun, &token).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(anna.is_signed_in().await && portal.is_ready());
    portal.provider.set_away(false);
    assert!(portal.anna().await.is_signed_in().await);
}

#[tokio::test]
async fn fault_44_a_portal_that_starts_before_its_provider_is_ready_and_says_so() {
    let portal = Running::start().await;
    portal.provider.set_away(true);
    let answer = portal.browser().get("/auth/sign-in").await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("2"))
    );
    assert!(portal.is_ready());
    portal.provider.set_away(false);
    let began = async || {
        let answer = portal.browser().get("/auth/sign-in").await;
        ensure!(answer.status == 303, "{answer:?}");
        Ok(())
    };
    wait_until("a sign-in with the provider back", SOON, began)
        .await
        .unwrap();
}

#[tokio::test]
async fn fault_44_a_logout_while_the_provider_has_new_keys_is_believed() {
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    let next = SigningKey::edwards("next").unwrap();
    portal.provider.tell(&[&next]);
    let body = format!(
        "logout_token={}",
        next.sign(&portal.logout("once")).unwrap()
    );
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let mut provider = portal.browser();
    let answer = provider.ask("POST", "/auth/back-channel", &form, &body);
    assert_eq!(answer.await.status, 200);
    assert!(!anna.is_signed_in().await);
}

#[tokio::test]
async fn fault_45_the_api_server_away_costs_keys_and_nothing_else() {
    // It always is in these tests.
    let portal = Running::start().await;
    let mut anna = portal.anna().await;
    let keys = anna.get("/account/v1/accounts/acme/keys").await;
    assert_eq!(keys.status, 503);
    assert!(keys.header("retry-after").is_some());
    for target in [
        "/account/v1/accounts/acme/usage",
        "/a/acme/settings/api",
        "/a/acme/map",
    ] {
        assert_eq!(anna.get(target).await.status, 200, "{target}");
    }
    assert!(anna.is_signed_in().await);
    assert!(
        portal.anna().await.is_signed_in().await,
        "people still sign in"
    );
}

#[tokio::test]
async fn a_refused_client_is_reported_to_the_operator_until_a_sign_in_succeeds() {
    let portal = Running::start().await;
    for word in ["invalid_client", "unauthorized_client"] {
        portal.provider.refuse_clients(Some(word));
        let mut browser = portal.browser();
        let begun = browser.begin("/").await;
        let answer = browser.back(&begun.state, "code").await;
        assert_eq!(answer.status, 502, "{answer:?}");
        let page = str::from_utf8(&answer.body).unwrap();
        assert!(page.contains("does not accept this site"), "{page}");
        let problem = format!("the identity provider refused the exchange: {word}");
        let reported = json!({ "usable": false, "problem": problem, "clientRefused": true });
        assert_eq!(portal.provider_report().await, reported);
        portal.provider.refuse_clients(None);
        portal.anna().await;
        let usable = async || {
            let reported = portal.provider_report().await;
            ensure!(reported == json!({ "usable": true }), "{reported}");
            Ok(())
        };
        wait_until("a provider that can be used", SOON, usable)
            .await
            .unwrap();
    }
}
