//! What is away costs what needs it, and nothing else.

use anyhow::ensure;
use serde_json::json;
use water_harness::{Redis, SigningKey, wait_until};

use crate::site::*;

#[tokio::test]
async fn redis_away_and_back_keeps_everybody_signed_in() {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_with(&redis.url(), &[]).await;
    let mut anna = site.anna().await;
    redis.pause().unwrap();
    let kept = anna.cookies.clone();
    let requests = [
        ("GET", "/account/v1/session"),
        ("GET", "/account/v1/accounts/acme/keys"),
        ("POST", "/auth/sign-out"),
    ];
    for (method, target) in requests {
        let own = [("Sec-Fetch-Site", "same-origin")];
        let answer = anna.ask(method, target, &own, "").await;
        assert_eq!(answer.status, 503, "{target}");
        assert!(answer.header("retry-after").is_some(), "{target}");
        assert_eq!(anna.cookies, kept, "{target}");
    }
    assert!(site.is_ready(), "somebody has to say so");
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
async fn a_sign_in_without_redis_says_so_on_a_page() {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_with(&redis.url(), &[]).await;
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    let token = site.key.sign(&site.claims(&begun.nonce)).unwrap();
    redis.pause().unwrap();
    let answer = browser.finish(&site, &begun, &token).await;
    assert_eq!(answer.status, 503);
    assert!(
        answer
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
}

#[tokio::test]
async fn the_provider_away_stops_sign_ins_and_nothing_else() {
    let site = Site::start().await;
    let mut anna = site.anna().await;
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    site.provider.set_away(true);
    let token = site.key.sign(&site.claims(&begun.nonce)).unwrap();
    let answer = browser.finish(&site, &begun, &token).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(anna.is_signed_in().await && site.is_ready());
    site.provider.set_away(false);
    assert!(site.anna().await.is_signed_in().await);
}

#[tokio::test]
async fn a_portal_that_starts_before_its_provider_is_ready_and_says_so() {
    let site = Site::start().await;
    site.provider.set_away(true);
    let answer = site.browser().get("/auth/sign-in").await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("2"))
    );
    assert!(site.is_ready());
    site.provider.set_away(false);
    let began = async || {
        let answer = site.browser().get("/auth/sign-in").await;
        ensure!(answer.status == 303, "{answer:?}");
        Ok(())
    };
    wait_until("a sign-in with the provider back", SOON, began)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_logout_while_the_provider_has_new_keys_is_believed() {
    let site = Site::start().await;
    let mut anna = site.anna().await;
    let next = SigningKey::edwards("next").unwrap();
    site.provider.tell(&[&next]);
    let body = format!("logout_token={}", next.sign(&site.logout("once")).unwrap());
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let answer = site
        .browser()
        .ask("POST", "/auth/back-channel", &form, &body)
        .await;
    assert_eq!(answer.status, 200);
    assert!(!anna.is_signed_in().await);
}

#[tokio::test]
async fn the_api_server_away_costs_keys_and_nothing_else() {
    // It always is in these tests.
    let site = Site::start().await;
    let mut anna = site.anna().await;
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
        site.anna().await.is_signed_in().await,
        "people still sign in"
    );
}

#[tokio::test]
async fn a_refused_client_is_told_to_the_operator_until_a_sign_in_succeeds() {
    let site = Site::start().await;
    for word in ["invalid_client", "unauthorized_client"] {
        site.provider.refuse_clients(Some(word));
        let mut browser = site.browser();
        let begun = browser.begin("/").await;
        let answer = browser.back(&begun.state, "code").await;
        assert_eq!(answer.status, 502, "{answer:?}");
        let page = str::from_utf8(&answer.body).unwrap();
        assert!(page.contains("does not accept this site"), "{page}");
        let problem = format!("the identity provider refused the exchange: {word}");
        let told = json!({ "usable": false, "problem": problem, "clientRefused": true });
        assert_eq!(site.standing().await, told);
        site.provider.refuse_clients(None);
        site.anna().await;
        let usable = async || {
            let told = site.standing().await;
            ensure!(told == json!({ "usable": true }), "{told}");
            Ok(())
        };
        wait_until("a provider that can be used", SOON, usable)
            .await
            .unwrap();
    }
}
