//! The identity provider (OpenID Connect Core 1.0): its metadata, its keys, its tokens.
//!
//! It may be away, slow or hostile: each question has a deadline, each answer a largest size, and nothing
//! that it says is believed before it is checked.

mod client;
mod failure;
mod keys;
mod metadata;
mod question;
mod token;
mod verifier;
mod wire;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::utf8_percent_encode;
use serde::Deserialize;
use tokio::time::Instant;
use water_domain::Timestamp;
use water_http::Buckets;

pub use client::{Client, Issuer};
pub use failure::ProviderError;
pub use metadata::Metadata;
pub use token::{EndedSessions, IdToken, LogoutToken};
pub use wire::encoded;

use keys::KeySet;
use question::Question;
use wire::{FORM, Wire};

/// Age up to which the provider's metadata and keys count; keys that have disappeared by then are forgotten.
const FRESH: Duration = Duration::from_mins(10);
/// Questions for keys that are not among the known ones: three at once, then one a minute.
const UNKNOWN_KEYS: (f64, f64) = (1.0 / 60.0, 3.0);

/// The provider with its metadata and keys, once they were read.
#[derive(Debug)]
pub struct Provider {
    client: Client,
    wire: Wire,
    metadata: Question<Metadata>,
    /// Metadata that the last check of the provider has found.
    checked: Mutex<Option<Metadata>>,
    keys: Question<Arc<KeySet>>,
    unknown: Buckets<Budget>,
}

/// Reason of a question for an unknown key. Each has a budget of its own, so that one cannot use up what the other needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Budget {
    /// People who sign in.
    Callbacks,
    /// The provider, or anybody who posts something like a logout token.
    Logouts,
}

/// Answer of the token endpoint; other members are not read.
#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

impl Provider {
    /// Makes the provider of this client; asks nothing yet.
    pub fn new(client: Client) -> Self {
        Self {
            wire: Wire::new(client.ca.as_ref()),
            client,
            metadata: Question::default(),
            checked: Mutex::default(),
            keys: Question::default(),
            unknown: Buckets::new(UNKNOWN_KEYS.0, UNKNOWN_KEYS.1),
        }
    }

    /// Returns the portal's registration.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the metadata, which are at most ten minutes old.
    pub async fn metadata(&self) -> Result<Metadata, ProviderError> {
        let ask = || {
            let (wire, issuer) = (self.wire.clone(), self.client.issuer.clone());
            async move { Metadata::ask(&wire, &issuer).await }
        };
        self.metadata.answer(FRESH, ask).await
    }

    /// Returns the metadata that were last read, without a question.
    pub fn known_metadata(&self) -> Option<Metadata> {
        self.metadata.last().or_else(|| self.checked().clone())
    }

    /// Checks whether the provider can be used now.
    pub async fn look(&self) -> Result<(), ProviderError> {
        let found = Metadata::ask(&self.wire, &self.client.issuer).await?;
        *self.checked() = Some(found);
        Ok(())
    }

    fn checked(&self) -> MutexGuard<'_, Option<Metadata>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
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
        let basic = if metadata.takes_basic {
            Some(basic(id, secret))
        } else {
            form.extend([("client_id", id), ("client_secret", secret)]);
            None
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

    /// Returns the claims of a token that the provider signed. A key that is not known, and may not be asked for, says
    /// nothing against the token.
    async fn claims(
        &self,
        metadata: &Metadata,
        token: &str,
        budget: Budget,
    ) -> Result<serde_json::Value, ProviderError> {
        let header = token::header(token)?;
        let begun = Instant::now();
        let mut keys = self.keys(metadata, FRESH).await?;
        if keys.find(header.kid()).is_none() {
            let may_ask = self.unknown.take(budget, begun);
            may_ask.map_err(|_| ProviderError::UnknownKey)?;
            keys = self.keys(metadata, begun.elapsed()).await?;
        }
        Ok(token::verified(token, &header, keys.find(header.kid()))?)
    }

    /// Returns the signing keys, which are at most as old as this.
    async fn keys(&self, metadata: &Metadata, age: Duration) -> Result<Arc<KeySet>, ProviderError> {
        let ask = || {
            let (wire, address) = (self.wire.clone(), metadata.jwks_uri.clone());
            async move {
                let told = wire.get(&address).await?;
                Ok(Arc::new(KeySet::read(&told)?))
            }
        };
        self.keys.answer(age, ask).await
    }
}

/// Returns the value of `client_secret_basic`: both parts are form-encoded first (RFC 6749 §2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encode = |text| utf8_percent_encode(text, FORM).to_string();
    let pair = format!("{}:{}", encode(id), encode(secret));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}
