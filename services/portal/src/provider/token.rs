//! What a token must be to be believed, in one table for each kind.

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
/// How far the provider's clock may be off, in milliseconds.
const LEEWAY: i64 = 60_000;
/// The longest `sub`, `sid` and `jti` in characters (OpenID Connect Core 1.0 §2 for `sub`).
const MAX_NAME: usize = 255;
/// The event of a logout token (Back-Channel Logout 1.0 §2.4).
const LOGOUT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// What a token says of its signature, before anything of it is believed.
#[derive(Clone, Debug)]
pub struct TokenHeader {
    kid: String,
    algorithm: Algorithm,
}

impl TokenHeader {
    /// The name of the key.
    pub fn kid(&self) -> &str {
        &self.kid
    }
}

/// Who has signed in.
#[derive(Debug)]
pub struct IdToken {
    /// `sub`.
    pub subject: String,
    /// `sid`: the provider's session, if it tells one.
    pub sid: Option<String>,
    /// `name`, else `preferred_username`, else `email`.
    pub name: Option<String>,
    /// All claims.
    pub claims: Value,
    /// The token as it came, for signing out.
    pub text: Secret<String>,
}

/// Whose sessions are to end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogoutToken {
    /// What it ends.
    pub ends: Ended,
    /// `jti`.
    pub id: String,
    /// `exp`.
    pub expires: Timestamp,
}

/// What a logout token ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// What came of one session at the provider.
    Provider(String),
    /// All sessions of a subject.
    Subject(String),
}

/// Reads the header of a token of bearable size.
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

/// The claims of a token that this key signed.
pub fn verified(token: &str, header: &TokenHeader, key: Option<Key>) -> Result<Value, TokenError> {
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
    /// OpenID Connect Core 1.0 §3.1.3.7.
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
    /// OpenID Connect Back-Channel Logout 1.0 §2.6.
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
            (Some(sid), _) => Ended::Provider(sid),
            (None, Some(subject)) => Ended::Subject(subject),
            (None, None) => return Err(TokenError::Name),
        };
        let id = name(&claims, "jti")?.ok_or(TokenError::Name)?;
        Ok(Self { ends, id, expires })
    }
}

/// `iss`, `aud`, `azp`.
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
    match ours && party {
        true => Ok(()),
        false => Err(TokenError::Audience),
    }
}

/// `exp`, `nbf`, `iat`; the first of them is when it expires.
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

/// A claim of 1 to 255 characters without control characters; none where it is missing.
fn name(claims: &Value, claim: &str) -> Result<Option<String>, TokenError> {
    let Some(value) = claims.get(claim) else {
        return Ok(None);
    };
    let text = value.as_str().ok_or(TokenError::Name)?;
    let fits = (1..=MAX_NAME).contains(&text.chars().count());
    match fits && !text.contains(char::is_control) {
        true => Ok(Some(text.to_owned())),
        false => Err(TokenError::Name),
    }
}

#[cfg(test)]
mod tests;
