//! Checks of the claims, a row each. Signatures are checked against a provider that signs.

use serde_json::json;

use super::*;
use crate::provider::keys::KeySet;

const NOW: i64 = 1_700_000_000;

fn client() -> Client {
    Client {
        issuer: "https://id.example.org".parse().unwrap(),
        id: "water-portal".into(),
        secret: Secret::new("secret".into()),
        ca: None,
        scopes: "openid".parse().unwrap(),
    }
}

fn now() -> Timestamp {
    Timestamp::from_millis(NOW * 1000).unwrap()
}

/// Returns good claims of both kinds, with one of them set, or left out where it is null.
fn changed(base: Value, claim: &str, value: &Value) -> Value {
    let mut claims = base;
    match value {
        Value::Null => {
            claims.as_object_mut().unwrap().remove(claim);
        }
        value => claims[claim] = value.clone(),
    }
    claims
}

fn id(claim: &str, value: &Value) -> Result<IdToken, TokenError> {
    let base = json!({
        "iss": "https://id.example.org", "aud": "water-portal", "sub": "anna", "nonce": "n",
        "exp": NOW + 600, "iat": NOW, "name": "Anna",
    });
    IdToken::check(
        changed(base, claim, value),
        String::new(),
        &client(),
        "n",
        now(),
    )
}

fn logout(claim: &str, value: &Value) -> Result<LogoutToken, TokenError> {
    let base = json!({
        "iss": "https://id.example.org", "aud": ["water-portal"], "sub": "anna", "sid": "s",
        "exp": NOW + 120, "iat": NOW, "jti": "once", "events": {LOGOUT: {}},
    });
    LogoutToken::check(changed(base, claim, value), &client(), now())
}

#[test]
fn each_claim_of_an_id_token_is_judged_like_this() {
    let us = "water-portal";
    let table = [
        (
            "iss",
            json!("https://id.example.org/"),
            Some(TokenError::Issuer),
        ),
        ("iss", Value::Null, Some(TokenError::Issuer)),
        ("aud", json!("other"), Some(TokenError::Audience)),
        ("aud", json!([]), Some(TokenError::Audience)),
        ("aud", Value::Null, Some(TokenError::Audience)),
        ("aud", json!([us]), None),
        ("aud", json!([us, "other"]), Some(TokenError::Audience)),
        ("azp", json!(us), None),
        ("azp", json!("other"), Some(TokenError::Audience)),
        ("exp", json!(NOW - 59), None),
        ("exp", json!(NOW - 60), Some(TokenError::Expired)),
        ("exp", json!("never"), Some(TokenError::Expired)),
        ("exp", Value::Null, Some(TokenError::Expired)),
        ("iat", json!(NOW + 60), None),
        ("iat", json!(NOW + 61), Some(TokenError::Early)),
        ("iat", Value::Null, Some(TokenError::Early)),
        ("nbf", json!(NOW + 60), None),
        ("nbf", json!(NOW + 61), Some(TokenError::Early)),
        ("nbf", json!("soon"), Some(TokenError::Early)),
        ("nonce", json!("another"), Some(TokenError::Nonce)),
        ("nonce", Value::Null, Some(TokenError::Nonce)),
        ("events", json!({LOGOUT: {}}), Some(TokenError::Kind)),
        ("sub", json!(""), Some(TokenError::Name)),
        ("sub", json!("é".repeat(255)), None),
        ("sub", json!("a".repeat(256)), Some(TokenError::Name)),
        ("sub", json!("a\nb"), Some(TokenError::Name)),
        ("sub", json!(7), Some(TokenError::Name)),
        ("sub", Value::Null, Some(TokenError::Name)),
        ("sid", json!(7), Some(TokenError::Name)),
    ];
    for (claim, value, error) in table {
        assert_eq!(id(claim, &value).err(), error, "{claim}: {value}");
    }
}

#[test]
fn several_audiences_need_a_party_that_is_ours() {
    let claims = |azp: &str| {
        json!({
            "iss": "https://id.example.org", "aud": ["water-portal", "other"], "azp": azp,
            "sub": "anna", "nonce": "n", "exp": NOW + 600, "iat": NOW,
        })
    };
    let check = |azp| IdToken::check(claims(azp), String::new(), &client(), "n", now());
    assert!(check("water-portal").is_ok());
    assert_eq!(check("other").err(), Some(TokenError::Audience));
}

#[test]
fn each_claim_of_a_logout_token_is_judged_like_this() {
    let table = [
        (
            "iss",
            json!("https://evil.example.org"),
            Some(TokenError::Issuer),
        ),
        ("aud", json!("other"), Some(TokenError::Audience)),
        ("exp", json!(NOW - 60), Some(TokenError::Expired)),
        ("exp", Value::Null, Some(TokenError::Expired)),
        ("iat", json!(NOW + 61), Some(TokenError::Early)),
        ("events", Value::Null, Some(TokenError::Kind)),
        ("events", json!({"another": {}}), Some(TokenError::Kind)),
        ("events", json!({LOGOUT: "yes"}), Some(TokenError::Kind)),
        ("nonce", json!("n"), Some(TokenError::Nonce)),
        ("jti", Value::Null, Some(TokenError::Name)),
        ("sub", Value::Null, None),
    ];
    for (claim, value, error) in table {
        assert_eq!(logout(claim, &value).err(), error, "{claim}: {value}");
    }
}

#[test]
fn a_logout_token_ends_a_session_of_the_provider_or_else_a_subjects() {
    let ends = |claim, value| logout(claim, &value).unwrap().ends;
    assert_eq!(ends("x", Value::Null), EndedSessions::Provider("s".into()));
    assert_eq!(
        ends("sid", Value::Null),
        EndedSessions::Subject("anna".into())
    );
}

#[test]
fn a_person_is_shown_by_the_best_name_there_is() {
    assert_eq!(id("x", &Value::Null).unwrap().name.unwrap(), "Anna");
    assert_eq!(id("name", &Value::Null).unwrap().name, None);
}

/// An RSA key of 2048 bits, and a message that OpenSSL signed with its private half, which was not kept.
const MODULUS: &str = "zAyLYyzXJN0HAUk-91xIVi7QoktLGXlGdtvf7CoEcB-M2aoJQwHsUyF2LTDIpfICu8Dh0s5zF3drmkBvCCDL_GLYKiqNwHFKZNQPyouvJAGuwyGULYwM0cxE-KsuVndiH6ffT59AbdpOZ0yhJgbnL-4iDCMXdQ8kMOCQwp8gIJzxcMgcbdZ__yDnX87-_XN8W5amOdcxobTSAud_FmSGDnuXW5GZOLV5xuaoWEflWnTXexHZNQXHExStusUKDfmSzEYiEeVwpGIcsttLy5aCF75s96ocxsOnaY5B-oYvMAfycHm1R9R-eNa5dQlGt7ziEe3SGHHZhndyEpucoZipDQ";
const SIGNED: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJqb2UifQ.WBUEXM9vjTR9jqhTStlKK8qA7qNT8-yWLVzrGndf3BfTyLSgicwtSU3cNuyJ7yoCEXBXvzPN-3FC0Z1bwE67CIAvPc4zNrjQGJRRX3Fdu6tjIPzIdLil45Hofp62ai0IeKHI7VMoxZBRLX7hnDL9a9RVoh3Ktevy27IGrUjn9x-yrQdtuPKEFa7FE8GmXGtzcqMB36osQpWP4i9mb9gpiEMDDQ0MumN9UaIiW2fQ10znlK7bFmfcgPukRuGilBWTkjAtMw_KvTwbPRXdGaGQlC6HhKn3jR3RBF5MxoKUjdtIypgexkf7EwyX00CZ624l5d6ckbdB7k5KUzVdXVqXtg";

#[test]
fn an_rsa_signature_is_believed_and_a_changed_one_is_not() {
    let set = json!({"keys": [{"kty": "RSA", "kid": "rsa", "n": MODULUS, "e": "AQAB"}]});
    let keys = KeySet::read(set.to_string().as_bytes()).unwrap();
    let header = TokenHeader {
        kid: "rsa".into(),
        algorithm: Algorithm::RS256,
    };
    let key = keys.find(header.kid());
    let claims = verified(SIGNED, &header, key).unwrap();
    assert_eq!(claims["iss"], "joe");
    let changed = SIGNED.replace(".WBUE", ".AAAA");
    let error = verified(&changed, &header, key).unwrap_err();
    assert_eq!(error, TokenError::Signature);
}
