//! Signing in, the way there and the way back.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;
use sha2::{Digest, Sha256};
use water_harness::Answer;
use water_kit::KeyStore;
use water_kit::portal::SignIn;

use crate::running::Running;

#[tokio::test]
async fn a_person_signs_in_and_comes_back_to_the_page_that_they_left() {
    // The longest life of a key is shown before one is made.
    let bound = [("WATER_MAX_KEY_DAYS", "90")];
    let portal = Running::start_with(&KeyStore::new().await, &bound).await;
    let mut browser = portal.browser();
    assert_eq!(
        browser.session().await,
        json!({"signedIn": false, "keyPrefix": "wdk"})
    );
    let begun = browser.begin("/a/acme/map%3Fby%3Dflood").await;
    let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
    let answer = browser.finish(&portal, &begun, &token).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("/a/acme/map?by=flood"));
    let session = browser.session().await;
    let person = ["signedIn", "name", "subject"].map(|name| &session[name]);
    assert_eq!(person, [&json!(true), &json!("Anna"), &json!("anna")]);
    let accounts = json!([
        {"id": "acme", "plan": "Enterprise", "access": false, "role": "manager", "maxKeyDays": 90},
        {"id": "globex", "plan": "Enterprise", "access": false, "role": "viewer", "maxKeyDays": 90},
    ]);
    assert_eq!(
        session["accounts"], accounts,
        "access needs the WaterDataApi, which is away"
    );
    assert_eq!(browser.cookies.len(), 1, "the sign-in's own cookie is gone");
}

#[tokio::test]
async fn the_way_to_the_provider_has_all_that_the_flow_needs() {
    let portal = Running::start().await;
    let mut browser = portal.browser();
    // A page of another site is no page to come back to.
    let begun = browser.begin("//evil.example").await;
    let sent = |name: &str| begun.parameters[name].as_str();
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "water-portal"),
        (
            "redirect_uri",
            "https%3A%2F%2Fportal.example.org%2Fauth%2Fcallback",
        ),
        ("scope", "openid%20profile%20email"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(sent(name), value);
    }
    let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
    let back = browser.finish(&portal, &begun, &token).await;
    assert_eq!(back.header("location"), Some("/"));
    let form = portal.provider.exchanges().pop().unwrap();
    let posted = |name: &str| {
        let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
        let pair = pairs.find(|(other, _)| *other == name);
        pair.map(|(_, value)| value.to_owned())
    };
    let challenge = Sha256::digest(posted("code_verifier").unwrap());
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(challenge);
    assert_eq!(challenge, sent("code_challenge"));
    let secret = posted("client_secret");
    assert_eq!(secret, None, "the secret is in the header");
}

#[tokio::test]
async fn a_sign_in_names_the_page_to_come_back_to_once_and_has_no_parameter_that_does_not_exist() {
    let portal = Running::start().await;
    let mut browser = portal.browser();
    let english = [("Accept-Language", "en")];
    for query in [
        "to=/docs&to=/keys",
        "To=/docs",
        "to=/docs&organization=acme",
    ] {
        let target = format!("/auth/sign-in?{query}");
        let answer = browser.ask("GET", &target, &english, "").await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(browser.cookies.is_empty(), "{query}");
        let page = answer.text().unwrap();
        assert!(page.contains("give “to”, in small letters, once"), "{page}");
    }
    // As a tracker writes it, and a provider or a site that begins a sign-in.
    for query in [
        "to=/docs&utm_source=a&_=1",
        "iss=https%3A%2F%2Fid.example&login_hint=anna&organization=acme&fbclid=a",
    ] {
        let target = format!("/auth/sign-in?{query}");
        assert_eq!(browser.get(&target).await.status, 303, "{query}");
    }
}

#[tokio::test]
async fn a_state_that_this_browser_did_not_begin_signs_nobody_in() {
    let portal = Running::start().await;
    let (mut mine, mut other) = (portal.browser(), portal.browser());
    let (begun, theirs) = (mine.begin("/").await, other.begin("/").await);
    let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
    for state in ["", &theirs.state] {
        let begun = SignIn {
            state: state.to_owned(),
            ..begun.clone()
        };
        let answer = mine.finish(&portal, &begun, &token).await;
        assert_eq!(answer.status, 400, "{state}");
        assert!(!mine.is_signed_in().await, "{state}");
    }
    let stranger = other.finish(&portal, &begun, &token).await;
    assert_eq!(stranger.status, 400, "the code reached another browser");
    assert!(!other.is_signed_in().await);
}

#[tokio::test]
async fn a_sign_in_is_used_once_even_with_a_copy_of_its_cookie() {
    let portal = Running::start().await;
    let mut browser = portal.browser();
    let begun = browser.begin("/").await;
    let mut thief = browser.clone();
    let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
    assert_eq!(browser.finish(&portal, &begun, &token).await.status, 303);
    let mut signed_out = browser.clone();
    signed_out.cookies.clear();
    for stranger in [&mut signed_out, &mut thief] {
        let answer = stranger.finish(&portal, &begun, &token).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(!stranger.is_signed_in().await);
    }
    let exchanges = portal.provider.exchanges();
    assert_eq!(exchanges.len(), 1, "{exchanges:?}");
}

#[tokio::test]
async fn a_reader_who_is_signed_in_and_comes_back_again_is_sent_home() {
    let portal = Running::start().await;
    let mut browser = portal.browser();
    let begun = browser.begin("/docs").await;
    let sealed = browser.cookies.clone();
    let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
    let first = browser.finish(&portal, &begun, &token).await;
    assert_eq!(first.header("location"), Some("/docs"));
    // The second one still has the cookie of the sign-in.
    let (mut again, mut other) = (browser.clone(), browser.clone());
    again.cookies.extend(sealed);
    for (reader, state) in [
        (&mut browser, begun.state.as_str()),
        (&mut again, begun.state.as_str()),
        (&mut other, "of-no-sign-in"),
    ] {
        let answer = reader.back(state, "used").await;
        assert_eq!(answer.status, 303, "{answer:?}");
        assert_eq!(answer.header("location"), Some("/"));
        assert!(reader.is_signed_in().await);
        assert_eq!(reader.cookies.len(), 1, "the sign-in's own cookie is gone");
    }
    let target = format!("/auth/callback?state={}&code=used", begun.state);
    let image = [("Sec-Fetch-Dest", "image")];
    assert_eq!(browser.ask("GET", &target, &image, "").await.status, 403);
    browser.sign_out().await;
    assert_eq!(browser.back(&begun.state, "used").await.status, 400);
}

#[tokio::test]
async fn of_two_returns_at_once_one_signs_in_and_neither_signs_out() {
    let portal = Running::start().await;
    let mut one = portal.browser();
    let begun = one.begin("/docs").await;
    let mut two = one.clone();
    let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
    let (first, second) = tokio::join!(
        one.finish(&portal, &begun, &token),
        two.finish(&portal, &begun, &token)
    );
    // The browser had no session yet when it sent the second one.
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 400], "{first:?} {second:?}");
    let signed_in = [one.is_signed_in().await, two.is_signed_in().await];
    assert_eq!(signed_in, [first.status == 303, second.status == 303]);
    // What is shown in the end is loaded again with the cookies of both.
    one.cookies.extend(two.cookies);
    let again = one.back(&begun.state, "used").await;
    assert_eq!((again.status, again.header("location")), (303, Some("/")));
}

#[tokio::test]
async fn problems_are_in_the_readers_language_and_nothing_else_varies_by_it() {
    let portal = Running::start().await;
    let (mut stranger, mut anna) = (portal.browser(), portal.anna().await);
    let ours = "/account/v1/accounts/acme/keys";
    let others = "/account/v1/accounts/initech/keys";
    for (accepted, title) in [
        ("fr, en;q=0.5", "Une connexion est nécessaire"),
        ("en, fr;q=0.5", "Signing in is required"),
    ] {
        let fields = [("Accept-Language", accepted)];
        let answer = stranger.ask("GET", ours, &fields, "").await;
        let body = answer.json().unwrap();
        let code = [&body["code"], &body["title"]];
        assert_eq!(code, [&json!("sign_in_required"), &json!(title)]);
        assert_eq!(answer.header("content-language"), Some(&accepted[..2]));
        let vary = answer.header("vary").unwrap();
        assert!(vary.ends_with(", Accept-Language"), "{vary}");
    }
    let french = [("Accept-Language", "fr")];
    let answer = anna.ask("GET", others, &french, "").await;
    assert_eq!(answer.json().unwrap()["detail"], "Ce chemin n’existe pas.");
    for target in ["/", "/account/v1/session"] {
        let answer = anna.ask("GET", target, &french, "").await;
        let vary = answer.header("vary").unwrap_or_default();
        assert_eq!(answer.status, 200, "{target}");
        assert!(!vary.contains("Language"), "{target}: {vary}");
        assert_eq!(answer.header("accept-ranges"), Some("none"), "{target}");
    }
}

#[tokio::test]
async fn a_way_back_without_a_token_or_from_another_issuer_signs_nobody_in() {
    let portal = Running::start().await;
    let denied = "&error=access_denied&error_description=%3Cb%3E";
    let other = "&code=c&iss=https%3A%2F%2Fevil.example";
    for (rest, status, sentence) in [
        (other, 502, "n’a pas pu être vérifiée"),
        (denied, 400, "ne vous a pas connecté"),
        // With what some providers add, which must be ignored (RFC 6749 §4.1.2).
        (
            "&code=never-given&session_state=s&scope=openid",
            400,
            "n’a pas été commencée",
        ),
    ] {
        // Each sign-in is for one way back.
        let mut browser = portal.browser();
        let begun = browser.begin("/").await;
        let target = format!("/auth/callback?state={}{rest}", begun.state);
        let french = [("Accept-Language", "fr")];
        let answer = browser.ask("GET", &target, &french, "").await;
        assert_eq!(answer.status, status, "{rest}");
        let page = answer.text().unwrap();
        assert!(
            page.contains("lang=\"fr\"") && page.contains(sentence),
            "{page}"
        );
        assert!(
            !page.contains("<b>") && !page.contains("access_denied"),
            "{page}"
        );
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"));
        assert!(!browser.is_signed_in().await, "{rest}");
        // The code of another issuer is not used.
        let is_used = !portal.provider.exchanges().is_empty();
        assert_eq!(is_used, rest.contains("never-given"), "{rest}");
    }
}

#[tokio::test]
async fn claims_decide_on_accounts_or_sign_nobody_in() {
    let portal = Running::start().await;
    let mut browser = portal.browser();
    let contradiction = json!(["water:acme:Free", "water:acme:Enterprise"]);
    let refused = browser.sign_in(&portal, |claims| claims["groups"] = contradiction);
    assert_eq!(refused.await.status, 403);
    assert!(!browser.is_signed_in().await);

    let none = browser.sign_in(&portal, |claims| claims["groups"] = json!(["staff"]));
    assert_eq!(none.await.status, 303);
    let session = browser.session().await;
    let shown = ["subject", "accounts"].map(|name| &session[name]);
    assert_eq!(shown, [&json!("anna"), &json!([])]);
}

#[tokio::test]
async fn a_page_of_another_site_cannot_begin_a_sign_in_within_itself() {
    let portal = Running::start().await;
    let mut browser = portal.browser();
    let fields = [("Sec-Fetch-Dest", "iframe")];
    let answer = browser.ask("GET", "/auth/sign-in", &fields, "").await;
    assert_eq!((answer.status, browser.cookies.len()), (403, 0));
}

/// Asks until the answer is 429; returns it and the number of answers with the status `taken` before.
async fn exhaust(mut ask: impl AsyncFnMut() -> Answer, taken: u16) -> (Answer, u32) {
    let mut count = 0;
    loop {
        let answer = ask().await;
        if answer.status == 429 {
            return (answer, count);
        }
        assert_eq!(answer.status, taken, "{answer:?}");
        count += 1;
        // One more every three seconds, on a machine however busy.
        assert!(count < 60, "no end of {count} requests");
    }
}

#[tokio::test]
async fn an_address_begins_twenty_sign_ins_and_comes_back_as_often_and_others_go_on() {
    let portal = Running::start().await;
    let mut visitor = portal.browser();
    visitor.address = Some("192.0.2.1".to_owned());
    let begun = visitor.begin("/").await;
    let cookies = visitor.cookies.clone();
    let mut back = async || {
        visitor.cookies.clone_from(&cookies);
        visitor.back(&begun.state, "guessed").await
    };
    back().await;
    // Once used up, the state is refused.
    let (refused, count) = exhaust(&mut back, 400).await;
    assert!(count >= 19 && refused.header("retry-after").is_some());
    let (refused, count) = exhaust(async || visitor.get("/auth/sign-in").await, 303).await;
    assert!(count >= 19 && refused.header("retry-after").is_some());
    visitor.address = Some("192.0.2.2".to_owned());
    assert_eq!(visitor.get("/auth/sign-in").await.status, 303);
}

#[tokio::test]
async fn what_a_page_of_another_site_can_send_keeps_nobody_at_the_address_from_signing_in() {
    let portal = Running::start().await;
    let mut visitor = portal.browser();
    for _ in 0..40 {
        for (target, taken, fields) in [
            ("/auth/sign-in", 403, &[("Sec-Fetch-Dest", "image")][..]),
            (
                "/auth/callback?state=x&code=c",
                403,
                &[("Sec-Fetch-Dest", "image")],
            ),
            ("/auth/callback?state=of-no-sign-in&code=guessed", 400, &[]),
        ] {
            assert_eq!(visitor.ask("GET", target, fields, "").await.status, taken);
        }
    }
    assert!(portal.anna().await.is_signed_in().await);
}
