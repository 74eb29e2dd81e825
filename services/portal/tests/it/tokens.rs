//! Wrong tokens, a row for each way: none of them signs anybody in.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};
use water_harness::SigningKey;
use water_kit::Portal;
use water_kit::portal::epoch_seconds;

use crate::running::Running;

/// Signs good claims under this header.
fn under(portal: &Portal, nonce: &str, header: Value) -> String {
    let claims = portal.claims(nonce);
    portal.key.sign_under(&header, &claims).unwrap()
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns a token without a signature.
fn unsigned(portal: &Portal, nonce: &str, algorithm: &str) -> String {
    let token = under(portal, nonce, json!({"alg": algorithm, "kid": "first"}));
    let (message, _) = token.rsplit_once('.').unwrap();
    format!("{message}.")
}

/// Signs by HMAC with the public key, which everybody knows.
fn by_public_key(portal: &Portal, nonce: &str) -> String {
    let header = json!({"alg": "HS256", "kid": "first"});
    let parts = [header, portal.claims(nonce)].map(|part| base64(part.to_string()));
    let message = parts.join(".");
    let key = hmac::Key::new(hmac::HMAC_SHA256, portal.key.public_bytes());
    let signature = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", base64(signature))
}

/// Returns a good token with one character of its claims changed afterwards.
fn changed(portal: &Portal, nonce: &str) -> String {
    let token = portal.key.sign(&portal.claims(nonce)).unwrap();
    let parts: Vec<_> = token.split('.').collect();
    let claims = BASE64_URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
    let claims = String::from_utf8(claims).unwrap();
    let claims = base64(claims.replace("water:acme", "water:evil"));
    format!("{}.{claims}.{}", parts[0], parts[2])
}

/// Signs with another key, which the token brings along.
fn with_its_key(portal: &Portal, nonce: &str) -> String {
    let other = SigningKey::elliptic("first").unwrap();
    let point = other.public_bytes();
    let (x, y) = (base64(&point[1..33]), base64(&point[33..]));
    let jwk = json!({"kty": "EC", "crv": "P-256", "x": x, "y": y});
    let header = json!({"alg": "ES256", "kid": "first", "jwk": jwk});
    other.sign_under(&header, &portal.claims(nonce)).unwrap()
}

/// Returns tokens that are no good whatever they claim, each with the check that has to find it.
fn forged(portal: &Portal, nonce: &str) -> Vec<(&'static str, String)> {
    let under = |header| under(portal, nonce, header);
    let stranger = SigningKey::elliptic("first").unwrap();
    let crit = json!({"alg": "ES256", "kid": "first", "crit": ["b64"]});
    vec![
        ("token_header", unsigned(portal, nonce, "none")),
        ("token_signature", unsigned(portal, nonce, "ES256")),
        ("token_algorithm", by_public_key(portal, nonce)),
        ("token_signature", changed(portal, nonce)),
        (
            "token_algorithm",
            under(json!({"alg": "RS256", "kid": "first"})),
        ),
        (
            "token_algorithm",
            under(json!({"alg": "EdDSA", "kid": "first"})),
        ),
        ("token_key", under(json!({"alg": "ES256"}))),
        ("token_key", under(json!({"alg": "ES256", "kid": "other"}))),
        ("token_header", under(crit)),
        (
            "token_signature",
            stranger.sign(&portal.claims(nonce)).unwrap(),
        ),
        ("token_signature", with_its_key(portal, nonce)),
        ("token_header", "not a token".to_owned()),
        ("token_header", "e30.e30".to_owned()),
        ("token_header", String::new()),
    ]
}

/// Returns a claim of a good token that is changed, or left out where it is null; the tests of the code
/// check more values of each.
fn wrong_claims() -> Vec<(&'static str, &'static str, Value)> {
    let now = epoch_seconds();
    let logout = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    vec![
        ("token_issuer", "iss", json!("https://evil.example")),
        ("token_audience", "aud", json!(["water-portal", "another"])),
        ("token_expired", "exp", json!(now - 61)),
        ("token_early", "iat", json!(now + 86_400)),
        ("token_nonce", "nonce", json!("replayed")),
        ("token_kind", "events", logout),
        ("token_name", "sub", Value::Null),
        ("token_large", "padding", json!("a".repeat(16_384))),
    ]
}

#[tokio::test]
async fn a_token_that_fails_any_check_signs_nobody_in() {
    let portal = Running::start().await;
    let count = forged(&portal, "").len() + wrong_claims().len();
    for number in 0..count {
        let mut browser = portal.browser();
        browser.address = Some(format!("192.0.2.{number}"));
        let begun = browser.begin("/").await;
        let mut tokens = forged(&portal, &begun.nonce);
        tokens.extend(wrong_claims().into_iter().map(|(reason, name, value)| {
            let mut claims = portal.claims(&begun.nonce);
            claims[name] = value;
            claims
                .as_object_mut()
                .unwrap()
                .retain(|_, value| !value.is_null());
            (reason, portal.key.sign(&claims).unwrap())
        }));
        let (reason, token) = &tokens[number];
        let before = portal.sign_ins().await;
        let answer = browser.finish(&portal, &begun, token).await;
        assert_eq!(answer.status, 502, "{number}: {reason}");
        assert!(browser.cookies.is_empty(), "{number}: {reason}");
        let after = portal.sign_ins().await;
        let grown = after.iter();
        let grown = grown.filter(|(outcome, count)| before.get(*outcome) != Some(count));
        let grown: Vec<_> = grown.map(|(outcome, _)| outcome).collect();
        assert_eq!(grown, [reason], "{number}");
    }
    assert!(portal.anna().await.is_signed_in().await, "the good one");
}

#[tokio::test]
async fn the_nonce_of_another_sign_in_of_the_same_browser_is_refused() {
    let portal = Running::start().await;
    let mut browser = portal.browser();
    let (one, two) = (browser.begin("/").await, browser.begin("/docs").await);
    let token = portal.key.sign(&portal.claims(&one.nonce)).unwrap();
    assert_eq!(browser.finish(&portal, &two, &token).await.status, 502);
    let own = browser.finish(&portal, &one, &token).await;
    assert_eq!(own.status, 303, "its own works");
}

#[tokio::test]
async fn keys_of_each_family_sign_people_in_and_new_ones_are_learned_at_once() {
    let portal = Running::start().await;
    let mut before = portal.anna().await;
    let next = SigningKey::edwards("next").unwrap();
    portal.provider.tell(&[&next]);
    let mut browser = portal.browser();
    for (key, status, questions) in [(&next, 303, 2), (&portal.key, 502, 3)] {
        let begun = browser.begin("/").await;
        let token = key.sign(&portal.claims(&begun.nonce)).unwrap();
        let answer = browser.finish(&portal, &begun, &token).await;
        assert_eq!(answer.status, status);
        assert!(before.is_signed_in().await);
        // The old key is forgotten.
        assert_eq!(portal.provider.asked_for_keys(), questions);
    }
    // A third unknown key is looked for; a fourth is not known, and so not refused.
    for (status, questions) in [(502, 4), (503, 4)] {
        let begun = browser.begin("/").await;
        let other = SigningKey::edwards("other").unwrap();
        let token = other.sign(&portal.claims(&begun.nonce)).unwrap();
        assert_eq!(browser.finish(&portal, &begun, &token).await.status, status);
        assert_eq!(portal.provider.asked_for_keys(), questions);
    }
}
