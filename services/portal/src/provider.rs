//! The identity provider (OpenID Connect Core 1.0): what it says of itself, its keys, its tokens.
//!
//! It may be away, slow or hostile: each question has a deadline, each answer a largest size, and
//! nothing that it says is believed before it is checked.

mod client;
mod failure;
mod keys;
mod metadata;
mod token;
mod verifier;
mod wire;

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::utf8_percent_encode;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use water_domain::Timestamp;

pub use client::{Client, Issuer};
pub use failure::ProviderError;
pub use keys::Budget;
pub use metadata::Metadata;
pub use token::{Ended, IdToken, LogoutToken};
pub use wire::encoded;

use keys::Keys;
use wire::{FORM, Wire};

/// How long what the provider says of itself counts.
const FRESH: Duration = Duration::from_mins(10);
/// After a failure nobody asks again for so long.
const REST: Duration = Duration::from_secs(2);

/// The provider, as far as it is known.
#[derive(Debug)]
pub struct Provider {
    client: Client,
    wire: Wire,
    metadata: Mutex<Option<Known>>,
    keys: Mutex<Keys>,
}

/// What the last question for the metadata gave.
#[derive(Debug)]
struct Known {
    at: Instant,
    told: Result<Metadata, ProviderError>,
}

/// The answer of the token endpoint, as far as it is read.
#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

impl Provider {
    /// Asks nothing yet.
    pub fn new(client: Client) -> Self {
        Self {
            wire: Wire::new(client.ca.as_ref()),
            client,
            metadata: Mutex::default(),
            keys: Mutex::default(),
        }
    }

    /// What the portal is to it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What it says of itself, at most ten minutes ago.
    pub async fn metadata(&self) -> Result<Metadata, ProviderError> {
        let mut known = self.metadata.lock().await;
        let now = Instant::now();
        if let Some(known) = &*known {
            let counts = match known.told {
                Ok(_) => FRESH,
                Err(_) => REST,
            };
            if now.duration_since(known.at) < counts {
                return known.told.clone();
            }
        }
        let told = Metadata::ask(&self.wire, &self.client.issuer).await;
        *known = Some(Known {
            at: now,
            told: told.clone(),
        });
        told
    }

    /// Whether it can be used now. What it says counts for nothing else.
    pub async fn look(&self) -> Result<(), ProviderError> {
        Metadata::ask(&self.wire, &self.client.issuer)
            .await
            .map(drop)
    }

    /// Exchanges a code for an ID token (RFC 6749 §4.1.3), which is checked by `nonce` and `now`.
    pub async fn exchange(
        &self,
        code: &str,
        verifier: &str,
        redirect: &str,
        nonce: &str,
        now: Timestamp,
    ) -> Result<IdToken, ProviderError> {
        let metadata = self.metadata().await?;
        let (id, secret) = (
            self.client.id.as_str(),
            self.client.secret.expose().as_str(),
        );
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
            ("code_verifier", verifier),
        ];
        let basic = match metadata.takes_basic {
            true => Some(basic(id, secret)),
            false => {
                form.extend([("client_id", id), ("client_secret", secret)]);
                None
            }
        };
        let answer = self
            .wire
            .post(&metadata.token_endpoint, &form, basic)
            .await?;
        let tokens: Tokens = serde_json::from_slice(&answer)
            .map_err(|_| ProviderError::Malformed("the token endpoint's answer"))?;
        let claims = self
            .claims(&metadata, &tokens.id_token, Budget::Callbacks)
            .await?;
        let token = IdToken::check(claims, tokens.id_token, &self.client, nonce, now)?;
        Ok(token)
    }

    /// Checks a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6) but for its `jti`, which
    /// the caller takes once.
    pub async fn logout_token(
        &self,
        text: &str,
        now: Timestamp,
    ) -> Result<LogoutToken, ProviderError> {
        let metadata = self.metadata().await?;
        let claims = self.claims(&metadata, text, Budget::Logouts).await?;
        Ok(LogoutToken::check(claims, &self.client, now)?)
    }

    /// The claims of a token that the provider signed.
    async fn claims(
        &self,
        metadata: &Metadata,
        token: &str,
        budget: Budget,
    ) -> Result<serde_json::Value, ProviderError> {
        let header = token::header(token)?;
        let mut keys = self.keys.lock().await;
        let now = Instant::now();
        if keys.must_ask(header.kid(), budget, now) {
            let told = self.wire.get(&metadata.jwks_uri).await?;
            keys.learn(&told, now)?;
        }
        let key = keys.find(header.kid(), now).cloned();
        drop(keys);
        Ok(token::verified(token, &header, key)?)
    }
}

/// `client_secret_basic`: both parts are form-encoded first (RFC 6749 §2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encode = |text| utf8_percent_encode(text, FORM).to_string();
    let pair = format!("{}:{}", encode(id), encode(secret));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}
