//! Signing in, the way there and the way back.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;
use sha2::{Digest, Sha256};
use water_harness::Redis;

use crate::site::*;

#[tokio::test]
async fn a_person_signs_in_and_comes_back_to_the_page_that_they_left() {
    let site = Site::start().await;
    let mut browser = site.browser();
    assert_eq!(
        browser.session().await,
        json!({"signedIn": false, "keyPrefix": "wdk"})
    );
    let begun = browser.begin("/a/acme/map%3Fby%3Dflood").await;
    let token = site.key.sign(&site.claims(&begun.nonce)).unwrap();
    let answer = browser.finish(&site, &begun, &token).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("/a/acme/map?by=flood"));
    let session = browser.session().await;
    assert_eq!(session["signedIn"], true);
    assert_eq!(
        (&session["name"], &session["subject"]),
        (&json!("Anna"), &json!("anna"))
    );
    let accounts = json!([
        {"id": "acme", "plan": "Enterprise", "access": false, "role": "manager", "maxKeyDays": null},
        {"id": "globex", "plan": "Enterprise", "access": false, "role": "viewer", "maxKeyDays": null},
    ]);
    assert_eq!(
        session["accounts"], accounts,
        "access needs the WaterDataApi, which is away"
    );
    assert_eq!(browser.cookies.len(), 1, "the sign-in's own cookie is gone");
}

#[tokio::test]
async fn the_longest_life_of_a_key_is_told_before_one_is_made() {
    let redis = Redis::shared().await.unwrap();
    let bound = [("WATER_MAX_KEY_DAYS", "90")];
    let site = Site::start_with(&redis.url(), &bound).await;
    for account in site.anna().await.session().await["accounts"]
        .as_array()
        .unwrap()
    {
        assert_eq!(account["maxKeyDays"], 90, "{account}");
    }
}

#[tokio::test]
async fn the_way_to_the_provider_has_all_that_the_flow_needs() {
    let site = Site::start().await;
    let mut browser = site.browser();
    let begun = browser.begin("/docs").await;
    let sent = |name: &str| begun.parameters[name].as_str();
    assert_eq!(sent("response_type"), "code");
    assert_eq!(sent("client_id"), "water-portal");
    assert_eq!(
        sent("redirect_uri"),
        "https%3A%2F%2Fportal.example.org%2Fauth%2Fcallback"
    );
    assert_eq!(sent("scope"), "openid%20profile%20email");
    assert_eq!(sent("code_challenge_method"), "S256");
    let token = site.key.sign(&site.claims(&begun.nonce)).unwrap();
    browser.finish(&site, &begun, &token).await;
    let form = site.provider.exchanges().pop().unwrap();
    let posted = |name: &str| {
        let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value.to_owned())
    };
    let challenge = Sha256::digest(posted("code_verifier").unwrap());
    assert_eq!(
        BASE64_URL_SAFE_NO_PAD.encode(challenge),
        sent("code_challenge")
    );
    assert_eq!(
        posted("client_secret"),
        None,
        "the secret stands in the header"
    );
}

#[tokio::test]
async fn a_state_that_this_browser_did_not_begin_signs_nobody_in() {
    let site = Site::start().await;
    let (mut mine, mut other) = (site.browser(), site.browser());
    let (begun, theirs) = (mine.begin("/").await, other.begin("/").await);
    let token = site.key.sign(&site.claims(&begun.nonce)).unwrap();
    for state in ["", "short", &theirs.state, &format!("{}x", begun.state)] {
        let begun = Begun {
            state: state.to_owned(),
            ..begun.clone()
        };
        let answer = mine.finish(&site, &begun, &token).await;
        assert_eq!(answer.status, 400, "{state}");
        assert!(!mine.is_signed_in().await, "{state}");
    }
    let stranger = other.finish(&site, &begun, &token).await;
    assert_eq!(stranger.status, 400, "the code reached another browser");
    assert!(!other.is_signed_in().await);
}

#[tokio::test]
async fn a_sign_in_is_used_once_even_by_who_kept_its_cookie() {
    let site = Site::start().await;
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    let mut thief = browser.clone();
    let token = site.key.sign(&site.claims(&begun.nonce)).unwrap();
    assert_eq!(browser.finish(&site, &begun, &token).await.status, 303);
    assert_eq!(browser.finish(&site, &begun, &token).await.status, 400);
    assert_eq!(thief.finish(&site, &begun, &token).await.status, 400);
    assert!(!thief.is_signed_in().await);
}

#[tokio::test]
async fn a_code_that_the_provider_does_not_know_signs_nobody_in() {
    let site = Site::start().await;
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    let answer = browser.back(&begun.state, "never-given").await;
    assert_eq!(answer.status, 400);
    assert!(!browser.is_signed_in().await);
}

#[tokio::test]
async fn a_provider_that_says_no_is_told_in_one_sentence_in_the_readers_language() {
    let site = Site::start().await;
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    let target = format!(
        "/auth/callback?state={}&error=access_denied&error_description=%3Cb%3E",
        begun.state
    );
    let answer = browser
        .ask("GET", &target, &[("Accept-Language", "fr")], "")
        .await;
    let page = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 400);
    assert!(
        page.contains("lang=\"fr\"") && page.contains("ne vous a pas connecté"),
        "{page}"
    );
    assert!(
        !page.contains("<b>") && !page.contains("access_denied"),
        "{page}"
    );
    assert!(
        answer
            .header("content-security-policy")
            .unwrap()
            .starts_with("default-src 'none'")
    );
}

#[tokio::test]
async fn an_answer_in_the_name_of_another_issuer_is_refused_before_its_code_is_used() {
    let site = Site::start().await;
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    let target = format!(
        "/auth/callback?state={}&code=c&iss=https%3A%2F%2Fevil.example",
        begun.state
    );
    assert_eq!(browser.get(&target).await.status, 502);
    assert!(site.provider.exchanges().is_empty());
}

#[tokio::test]
async fn nobody_is_sent_to_another_site_after_a_sign_in() {
    let site = Site::start().await;
    for to in [
        "//evil.example",
        "https://evil.example",
        "/%5Cevil.example",
        "/auth/sign-out",
        "/docs%0d%0aX:1",
    ] {
        let mut browser = site.browser();
        let begun = browser.begin(to).await;
        let token = site.key.sign(&site.claims(&begun.nonce)).unwrap();
        let answer = browser.finish(&site, &begun, &token).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some("/")),
            "{to}"
        );
    }
}

#[tokio::test]
async fn claims_that_contradict_each_other_sign_nobody_in() {
    let site = Site::start().await;
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    let mut claims = site.claims(&begun.nonce);
    claims["groups"] = json!(["water:acme:Free", "water:acme:Enterprise"]);
    let token = site.key.sign(&claims).unwrap();
    assert_eq!(browser.finish(&site, &begun, &token).await.status, 403);
    assert!(!browser.is_signed_in().await);
}

#[tokio::test]
async fn who_has_no_account_is_signed_in_and_told_who_they_are() {
    let site = Site::start().await;
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    let mut claims = site.claims(&begun.nonce);
    claims["groups"] = json!(["staff"]);
    let token = site.key.sign(&claims).unwrap();
    assert_eq!(browser.finish(&site, &begun, &token).await.status, 303);
    let session = browser.session().await;
    assert_eq!(
        (&session["subject"], &session["accounts"]),
        (&json!("anna"), &json!([]))
    );
}

#[tokio::test]
async fn a_page_of_another_site_cannot_begin_a_sign_in_within_itself() {
    let site = Site::start().await;
    for dest in ["iframe", "image", "script"] {
        let mut browser = site.browser();
        let fields = [("Sec-Fetch-Dest", dest)];
        let answer = browser.ask("GET", "/auth/sign-in", &fields, "").await;
        assert_eq!((answer.status, browser.cookies.len()), (403, 0), "{dest}");
    }
}

#[tokio::test]
async fn an_address_begins_twenty_sign_ins_and_others_go_on() {
    let site = Site::start().await;
    let mut begun = 0;
    let refused = loop {
        let fields = [("X-Forwarded-For", "192.0.2.1")];
        let answer = site
            .browser()
            .ask("GET", "/auth/sign-in", &fields, "")
            .await;
        if answer.status == 429 {
            break answer;
        }
        assert_eq!(answer.status, 303, "{answer:?}");
        begun += 1;
        // One more every three seconds, on a machine however busy.
        assert!(begun < 60, "no end of {begun} sign-ins");
    };
    assert!(begun >= 20, "{begun}");
    assert!(refused.header("retry-after").is_some());
    let fields = [("X-Forwarded-For", "192.0.2.2")];
    assert_eq!(
        site.browser()
            .ask("GET", "/auth/sign-in", &fields, "")
            .await
            .status,
        303
    );
}

#[tokio::test]
async fn an_address_comes_back_twenty_times_a_minute_and_others_go_on() {
    let site = Site::start().await;
    let mut visitor = site.browser();
    visitor.address = Some("192.0.2.3".to_owned());
    let mut taken = 0;
    let refused = loop {
        let answer = visitor.back("of-no-sign-in", "guessed").await;
        if answer.status == 429 {
            break answer;
        }
        assert_eq!(answer.status, 400, "{answer:?}");
        taken += 1;
        // One more every three seconds, on a machine however busy.
        assert!(taken < 60, "no end of {taken} ways back");
    };
    assert!(taken >= 20, "{taken}");
    assert!(refused.header("retry-after").is_some());
    assert!(site.somebody().await.is_signed_in().await);
}
