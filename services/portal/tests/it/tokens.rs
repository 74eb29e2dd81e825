//! Every way in which a token can be wrong, a row each: nobody is signed in by any of them.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};
use water_harness::SigningKey;

use crate::site::*;

type Forge = fn(&Site, &str) -> String;

/// Good claims with some of them set; null takes one away.
fn with(site: &Site, nonce: &str, changes: Value) -> Value {
    let mut claims = site.claims(nonce);
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims
                .as_object_mut()
                .unwrap()
                .insert(name.clone(), value.clone()),
        };
    }
    claims
}

fn signed(site: &Site, nonce: &str, changes: Value) -> String {
    site.key.sign(&with(site, nonce, changes)).unwrap()
}

fn under(site: &Site, nonce: &str, header: Value) -> String {
    site.key.sign_under(&header, &site.claims(nonce)).unwrap()
}

/// Without a signature.
fn unsigned(site: &Site, nonce: &str, algorithm: &str) -> String {
    let token = under(site, nonce, json!({"alg": algorithm, "kid": "first"}));
    let (message, _) = token.rsplit_once('.').unwrap();
    format!("{message}.")
}

/// Signed by HMAC with the public key, which everybody knows.
fn by_public_key(site: &Site, nonce: &str) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({"alg": "HS256", "kid": "first"});
    let message = format!("{}.{}", part(&header), part(&site.claims(nonce)));
    let key = hmac::Key::new(hmac::HMAC_SHA256, site.key.public_bytes());
    let signature = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

/// Good, with one character of its claims changed afterwards.
fn changed(site: &Site, nonce: &str) -> String {
    let token = signed(site, nonce, json!({}));
    let parts: Vec<_> = token.split('.').collect();
    let claims = BASE64_URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
    let claims = String::from_utf8(claims)
        .unwrap()
        .replace("water:acme", "water:evil");
    format!(
        "{}.{}.{}",
        parts[0],
        BASE64_URL_SAFE_NO_PAD.encode(claims),
        parts[2]
    )
}

/// What is wrong, and the check that has to find it.
const ROWS: &[(&str, &str, Forge)] = &[
    ("alg none", "token_header", |site, nonce| {
        unsigned(site, nonce, "none")
    }),
    (
        "alg ES256 without a signature",
        "token_signature",
        |site, nonce| unsigned(site, nonce, "ES256"),
    ),
    (
        "HS256 with the public key",
        "token_algorithm",
        by_public_key,
    ),
    ("changed afterwards", "token_signature", changed),
    (
        "another family's algorithm",
        "token_algorithm",
        |site, nonce| under(site, nonce, json!({"alg": "RS256", "kid": "first"})),
    ),
    ("EdDSA for a P-256 key", "token_algorithm", |site, nonce| {
        under(site, nonce, json!({"alg": "EdDSA", "kid": "first"}))
    }),
    ("no kid", "token_key", |site, nonce| {
        under(site, nonce, json!({"alg": "ES256"}))
    }),
    ("an unknown kid", "token_key", |site, nonce| {
        under(site, nonce, json!({"alg": "ES256", "kid": "other"}))
    }),
    ("crit", "token_header", |site, nonce| {
        under(
            site,
            nonce,
            json!({"alg": "ES256", "kid": "first", "crit": ["b64"]}),
        )
    }),
    (
        "another key under our kid",
        "token_signature",
        |site, nonce| {
            let other = SigningKey::elliptic("first").unwrap();
            other.sign(&site.claims(nonce)).unwrap()
        },
    ),
    (
        "a key that it brings along",
        "token_signature",
        |site, nonce| {
            let other = SigningKey::elliptic("first").unwrap();
            let point = other.public_bytes();
            let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
            let jwk = json!({"kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..])});
            let header = json!({"alg": "ES256", "kid": "first", "jwk": jwk});
            other.sign_under(&header, &site.claims(nonce)).unwrap()
        },
    ),
    ("another issuer", "token_issuer", |site, nonce| {
        signed(site, nonce, json!({"iss": "https://evil.example"}))
    }),
    ("another audience", "token_audience", |site, nonce| {
        signed(site, nonce, json!({"aud": "another-client"}))
    }),
    (
        "several audiences without a party",
        "token_audience",
        |site, nonce| {
            signed(
                site,
                nonce,
                json!({"aud": ["water-portal", "another-client"]}),
            )
        },
    ),
    ("another party", "token_audience", |site, nonce| {
        signed(site, nonce, json!({"azp": "another-client"}))
    }),
    ("late", "token_expired", |site, nonce| {
        signed(site, nonce, json!({"exp": epoch_seconds() - 61}))
    }),
    ("without an end", "token_expired", |site, nonce| {
        signed(site, nonce, json!({"exp": null}))
    }),
    ("early", "token_early", |site, nonce| {
        signed(site, nonce, json!({"nbf": epoch_seconds() + 120}))
    }),
    ("issued tomorrow", "token_early", |site, nonce| {
        signed(site, nonce, json!({"iat": epoch_seconds() + 86_400}))
    }),
    ("another nonce", "token_nonce", |site, nonce| {
        signed(site, nonce, json!({"nonce": "replayed"}))
    }),
    ("no nonce", "token_nonce", |site, nonce| {
        signed(site, nonce, json!({"nonce": null}))
    }),
    ("a logout token", "token_kind", |site, nonce| {
        let events = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
        signed(site, nonce, json!({"events": events}))
    }),
    ("no subject", "token_name", |site, nonce| {
        signed(site, nonce, json!({"sub": null}))
    }),
    (
        "a subject of 256 characters",
        "token_name",
        |site, nonce| signed(site, nonce, json!({"sub": "a".repeat(256)})),
    ),
    ("over 16 KiB", "token_large", |site, nonce| {
        signed(site, nonce, json!({"padding": "a".repeat(16_384)}))
    }),
    ("no token", "token_header", |_, _| "not a token".to_owned()),
    ("two parts", "token_header", |_, _| "e30.e30".to_owned()),
    ("empty", "token_header", |_, _| String::new()),
];

#[tokio::test]
async fn a_token_that_fails_any_check_signs_nobody_in() {
    let site = Site::start().await;
    for (number, (name, reason, forge)) in ROWS.iter().enumerate() {
        let mut browser = site.browser();
        browser.address = Some(format!("192.0.2.{number}"));
        let begun = browser.begin("/").await;
        let token = forge(&site, &begun.nonce);
        let before = site.sign_ins().await;
        let answer = browser.finish(&site, &begun, &token).await;
        assert_eq!(answer.status, 502, "{name}");
        assert!(browser.cookies.is_empty(), "{name}");
        let after = site.sign_ins().await;
        let grown = after
            .iter()
            .filter(|(outcome, count)| before.get(*outcome) != Some(count));
        let grown: Vec<_> = grown.map(|(outcome, _)| outcome).collect();
        assert_eq!(grown, [reason], "{name}");
    }
    assert!(
        site.anna().await.is_signed_in().await,
        "the good one beside them"
    );
}

#[tokio::test]
async fn the_nonce_of_another_sign_in_of_the_same_browser_is_refused() {
    let site = Site::start().await;
    let mut browser = site.browser();
    let (one, two) = (browser.begin("/").await, browser.begin("/docs").await);
    let token = site.key.sign(&site.claims(&one.nonce)).unwrap();
    assert_eq!(browser.finish(&site, &two, &token).await.status, 502);
    let token = site.key.sign(&site.claims(&one.nonce)).unwrap();
    assert_eq!(
        browser.finish(&site, &one, &token).await.status,
        303,
        "its own works"
    );
}

#[tokio::test]
async fn each_family_of_keys_signs_people_in() {
    let site = Site::start().await;
    let edwards = SigningKey::edwards("second").unwrap();
    site.provider.tell(&[&edwards, &site.key]);
    for key in [&edwards, &site.key] {
        let mut browser = site.browser();
        let begun = browser.begin("/").await;
        let token = key.sign(&site.claims(&begun.nonce)).unwrap();
        assert_eq!(browser.finish(&site, &begun, &token).await.status, 303);
    }
}

#[tokio::test]
async fn keys_that_the_provider_has_rotated_are_learned_at_once_and_asked_for_once() {
    let site = Site::start().await;
    let mut before = site.anna().await;
    let next = SigningKey::elliptic("next").unwrap();
    site.provider.tell(&[&next]);
    let mut browser = site.browser();
    let begun = browser.begin("/").await;
    let token = next.sign(&site.claims(&begun.nonce)).unwrap();
    assert_eq!(browser.finish(&site, &begun, &token).await.status, 303);
    assert!(before.is_signed_in().await);
    assert_eq!(site.provider.asked_for_keys(), 2);
    let begun = browser.begin("/").await;
    let old = site.key.sign(&site.claims(&begun.nonce)).unwrap();
    assert_eq!(
        browser.finish(&site, &begun, &old).await.status,
        502,
        "the old key is forgotten"
    );
    assert_eq!(
        site.provider.asked_for_keys(),
        2,
        "an unknown key is asked for once a minute"
    );
}
