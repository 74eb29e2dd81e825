//! Conditions under which a token is believed, in one table for each kind.

use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::Value;
use water_domain::Timestamp;
use water_runtime::Secret;

use super::client::Client;
use super::failure::TokenError;
use super::keys::Key;
use super::verifier;

/// The longest token in bytes.
const MAX_TOKEN: usize = 16 * 1024;
/// Largest error of the provider's clock, in milliseconds.
const LEEWAY: i64 = 60_000;
/// The longest `sub`, `sid` and `jti` in characters (OpenID Connect Core 1.0 §2 for `sub`).
const MAX_NAME: usize = 255;
/// The event of a logout token (Back-Channel Logout 1.0 §2.4).
const LOGOUT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// Header of a token, before anything of it is believed.
#[derive(Clone, Debug)]
pub struct TokenHeader {
    kid: String,
    algorithm: Algorithm,
}

impl TokenHeader {
    /// Returns the name of the key.
    pub fn kid(&self) -> &str {
        &self.kid
    }
}

/// ID token of the signed-in person.
#[derive(Debug)]
pub struct IdToken {
    /// `sub`.
    pub subject: String,
    /// `sid`: the provider's session, if it names one.
    pub sid: Option<String>,
    /// `name`, else `preferred_username`, else `email`.
    pub name: Option<String>,
    /// Claims of the token.
    pub claims: Value,
    /// The token as it came, for signing out.
    pub text: Secret<String>,
}

/// Order to end sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogoutToken {
    /// Sessions that it ends.
    pub ends: EndedSessions,
    /// `jti`.
    pub id: String,
    /// `exp`.
    pub expires: Timestamp,
}

/// Sessions that a logout token ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EndedSessions {
    /// Sessions of one session at the provider.
    Provider(String),
    /// Sessions of a subject.
    Subject(String),
}

/// Reads the header of a token of at most 16 KiB.
pub fn header(token: &str) -> Result<TokenHeader, TokenError> {
    if token.len() > MAX_TOKEN {
        return Err(TokenError::Large);
    }
    let header = decode_header(token).map_err(|_| TokenError::Header)?;
    if header.crit.is_some() {
        return Err(TokenError::Header);
    }
    if !matches!(
        header.alg,
        Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA
    ) {
        return Err(TokenError::Algorithm);
    }
    Ok(TokenHeader {
        kid: header.kid.ok_or(TokenError::Key)?,
        algorithm: header.alg,
    })
}

/// Returns the claims of a token that this key signed.
pub fn verified(token: &str, header: &TokenHeader, key: Option<&Key>) -> Result<Value, TokenError> {
    let key = key.ok_or(TokenError::Key)?;
    if key.algorithm != header.algorithm {
        return Err(TokenError::Algorithm);
    }
    verifier::install();
    let mut validation = Validation::new(key.algorithm);
    // The claims are checked below, by a clock that is an argument.
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let token = decode::<Value>(token, &key.public, &validation);
    Ok(token.map_err(|_| TokenError::Signature)?.claims)
}

impl IdToken {
    /// Checks the claims by OpenID Connect Core 1.0 §3.1.3.7.
    pub fn check(
        claims: Value,
        text: String,
        client: &Client,
        nonce: &str,
        now: Timestamp,
    ) -> Result<Self, TokenError> {
        issued_for(&claims, client)?;
        in_time(&claims, now)?;
        if claims.get("nonce").and_then(Value::as_str) != Some(nonce) {
            return Err(TokenError::Nonce);
        }
        if claims.get("events").is_some() {
            return Err(TokenError::Kind);
        }
        let shown = ["name", "preferred_username", "email"];
        let shown = shown
            .iter()
            .find_map(|claim| name(&claims, claim).ok().flatten());
        Ok(Self {
            subject: name(&claims, "sub")?.ok_or(TokenError::Name)?,
            sid: name(&claims, "sid")?,
            name: shown,
            claims,
            text: Secret::new(text),
        })
    }
}

impl LogoutToken {
    /// Checks the claims by OpenID Connect Back-Channel Logout 1.0 §2.6.
    pub fn check(claims: Value, client: &Client, now: Timestamp) -> Result<Self, TokenError> {
        issued_for(&claims, client)?;
        let expires = in_time(&claims, now)?;
        let event = claims.get("events").and_then(|events| events.get(LOGOUT));
        if !event.is_some_and(Value::is_object) {
            return Err(TokenError::Kind);
        }
        if claims.get("nonce").is_some() {
            return Err(TokenError::Nonce);
        }
        let ends = match (name(&claims, "sid")?, name(&claims, "sub")?) {
            (Some(sid), _) => EndedSessions::Provider(sid),
            (None, Some(subject)) => EndedSessions::Subject(subject),
            (None, None) => return Err(TokenError::Name),
        };
        let id = name(&claims, "jti")?.ok_or(TokenError::Name)?;
        Ok(Self { ends, id, expires })
    }
}

/// Checks `iss`, `aud`, `azp`.
fn issued_for(claims: &Value, client: &Client) -> Result<(), TokenError> {
    let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
    if text("iss") != Some(client.issuer.as_str()) {
        return Err(TokenError::Issuer);
    }
    let (ours, several) = match claims.get("aud") {
        Some(Value::String(one)) => (*one == client.id, false),
        Some(Value::Array(all)) => {
            let ours = all.iter().any(|one| one.as_str() == Some(&client.id));
            (ours, all.len() > 1)
        }
        _ => (false, false),
    };
    let party = match claims.get("azp") {
        Some(azp) => azp.as_str() == Some(&client.id),
        None => !several,
    };
    if ours && party {
        Ok(())
    } else {
        Err(TokenError::Audience)
    }
}

/// Checks `exp`, `nbf`, `iat`; returns the time at which the token expires.
fn in_time(claims: &Value, now: Timestamp) -> Result<Timestamp, TokenError> {
    let seconds = |claim: &str| {
        claims
            .get(claim)
            .map(|value| value.as_f64().unwrap_or(f64::NAN))
    };
    let millis = |seconds: f64| {
        (seconds * 1000.0)
            .is_finite()
            .then_some((seconds * 1000.0) as i64)
    };
    let expires = seconds("exp").and_then(millis).ok_or(TokenError::Expired)?;
    if expires.saturating_add(LEEWAY) <= now.as_millis() {
        return Err(TokenError::Expired);
    }
    let begun = |at: f64| millis(at).is_some_and(|at| at <= now.as_millis().saturating_add(LEEWAY));
    if !seconds("iat").is_some_and(begun) || !seconds("nbf").is_none_or(begun) {
        return Err(TokenError::Early);
    }
    Ok(Timestamp::from_millis(expires).unwrap_or(now))
}

/// Returns a claim of 1 to 255 characters without control characters; none where it is missing.
fn name(claims: &Value, claim: &str) -> Result<Option<String>, TokenError> {
    let Some(value) = claims.get(claim) else {
        return Ok(None);
    };
    let text = value.as_str().ok_or(TokenError::Name)?;
    let fits = (1..=MAX_NAME).contains(&text.chars().count());
    if fits && !text.contains(char::is_control) {
        Ok(Some(text.to_owned()))
    } else {
        Err(TokenError::Name)
    }
}

#[cfg(test)]
mod tests;
