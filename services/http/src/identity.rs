//! The identity header: the gate signs the account of a request for a service.
//!
//! `X-Water-Identity: v1;account=…;key=…;plan=…;exp=…;mac=…`. `exp` is in milliseconds since the epoch; `mac` is the
//! HMAC-SHA-256, in hex, over everything before `;mac=`, a line feed, the method, a line feed, and the path with its
//! query. A replay repeats the same read.
//!
//! The gates sign on Redis' clock and a service checks with its own, so a wrong clock on either side must cost no
//! request: a service allows a [`LEEWAY`] of hours between the two, and reports their difference from the first seconds
//! on ([`crate::ClockSkew`]). The price is that an eavesdropper can repeat that one read for as long, if the network
//! lets it reach a service at all. A narrow window could not distinguish a replay from a clock that was set back.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sha2::Sha256;
use water_domain::{AccountId, KeyId, PlanName, Timestamp};

/// The header's name.
pub const X_WATER_IDENTITY: HeaderName = HeaderName::from_static("x-water-identity");

/// Time from signing to `exp`.
pub const LIFETIME: Duration = Duration::from_secs(30);
/// Largest difference between the gates' clock and a service's, either way: a machine that takes French summer time for
/// universal time is two hours off; five minutes are for its other drift.
pub const LEEWAY: Duration = Duration::from_secs(2 * 3600 + 5 * 60);
/// Bytes of an HMAC-SHA-256.
const MAC_LENGTH: usize = 32;
/// Longest header: an account has at most 63 characters, a plan too, a key id 12, a time 20 digits.
const MAX_LENGTH: usize = 256;

/// Identity of the caller, as authenticated by the gate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Account whose data may be read.
    pub account: AccountId,
    /// The key's public name.
    pub key: KeyId,
    /// The key's plan.
    pub plan: PlanName,
}

/// 32 secret bytes, written as 64 hex digits.
#[derive(Clone, PartialEq, Eq)]
pub struct IdentityKey([u8; 32]);

/// Text that is no identity key; the text is not repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an identity key is 64 hex digits")]
pub struct InvalidIdentityKey;

impl FromStr for IdentityKey {
    type Err = InvalidIdentityKey;

    fn from_str(text: &str) -> Result<Self, InvalidIdentityKey> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidIdentityKey)?;
        Ok(Self(bytes))
    }
}

impl fmt::Debug for IdentityKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("IdentityKey")
    }
}

impl IdentityKey {
    fn mac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.0).expect("an HMAC key may have any length")
    }
}

/// Signs identities, in the gate.
#[derive(Clone)]
pub struct Signer(Hmac<Sha256>);

impl Signer {
    /// Signs with the current key.
    pub fn new(current: &IdentityKey) -> Self {
        Self(current.mac())
    }

    /// Returns the header's value for one request; `expires` is [`LIFETIME`] from now.
    pub fn sign(
        &self,
        identity: &Identity,
        expires: Timestamp,
        method: &Method,
        path_and_query: &str,
    ) -> HeaderValue {
        let Identity { account, key, plan } = identity;
        let mut text = Vec::with_capacity(MAX_LENGTH);
        for part in [
            "v1;account=",
            account.as_str(),
            ";key=",
            key.as_str(),
            ";plan=",
            plan.as_str(),
            ";exp=",
            itoa::Buffer::new().format(expires.as_millis()),
        ] {
            text.extend_from_slice(part.as_bytes());
        }
        let mac = message(self.0.clone(), &text, method, path_and_query).finalize();
        text.extend_from_slice(b";mac=");
        let digits = text.len();
        text.resize(digits + 2 * MAC_LENGTH, 0);
        hex::encode_to_slice(mac.into_bytes(), &mut text[digits..])
            .expect("there are two digits for each byte");
        HeaderValue::try_from(text).expect("validated names, digits and hex are visible ASCII")
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Signer")
    }
}

/// An identity that a gate signed for this request, in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedIdentity {
    /// Identity of the caller.
    pub identity: Identity,
    /// Milliseconds by which the gates' clock is ahead of ours; negative: behind. The time that the request took from
    /// the gate counts as behind.
    pub ahead: i64,
}

/// Checks identities, in a service.
#[derive(Clone)]
pub struct Verifier(Vec<Hmac<Sha256>>);

/// Reason for rejecting an identity. Logged; the caller learns only that it was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdentityError {
    /// No header, or more than one.
    #[error("the request has no identity header, or several")]
    NotOne,
    /// Not of the form above.
    #[error("the identity header is malformed")]
    Malformed,
    /// Not signed for this request by a known key.
    #[error("the identity's signature is wrong for this request")]
    Forged,
    /// Signed, but a replay or by a clock that differs from ours by more than [`LEEWAY`].
    #[error("the identity is {ahead} ms ahead of this service's clock")]
    OutsideLeeway {
        /// Difference of the clocks, as in [`VerifiedIdentity`].
        ahead: i64,
    },
}

impl Verifier {
    /// Accepts the current key, and during a rotation the next one too.
    pub fn new(current: &IdentityKey, next: Option<&IdentityKey>) -> Self {
        Self(
            [Some(current), next]
                .into_iter()
                .flatten()
                .map(IdentityKey::mac)
                .collect(),
        )
    }

    /// Returns the identity of the caller, if the gate signed it for exactly this request.
    pub fn verify(
        &self,
        headers: &HeaderMap,
        method: &Method,
        path_and_query: &str,
        now: Timestamp,
    ) -> Result<VerifiedIdentity, IdentityError> {
        let mut values = headers.get_all(&X_WATER_IDENTITY).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(IdentityError::NotOne);
        };
        let text = value.to_str().map_err(|_| IdentityError::Malformed)?;
        let (signed, mac) = text.rsplit_once(";mac=").ok_or(IdentityError::Malformed)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(mac, &mut bytes).map_err(|_| IdentityError::Malformed)?;
        let matches = |key: &Hmac<Sha256>| {
            let message = message(key.clone(), signed.as_bytes(), method, path_and_query);
            message.verify_slice(&bytes).is_ok()
        };
        if !self.0.iter().any(matches) {
            return Err(IdentityError::Forged);
        }
        let (identity, expires) = parse(signed).ok_or(IdentityError::Malformed)?;
        let signed_at = expires.saturating_sub(LIFETIME.as_millis() as i64);
        let ahead = signed_at.saturating_sub(now.as_millis());
        if u128::from(ahead.unsigned_abs()) <= LEEWAY.as_millis() {
            Ok(VerifiedIdentity { identity, ahead })
        } else {
            Err(IdentityError::OutsideLeeway { ahead })
        }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Verifier")
    }
}

/// Adds the three signed parts. None of these texts can hold a line feed, so that no part can be shifted into another.
fn message(mac: Hmac<Sha256>, signed: &[u8], method: &Method, target: &str) -> Hmac<Sha256> {
    mac.chain_update(signed)
        .chain_update("\n")
        .chain_update(method.as_str())
        .chain_update("\n")
        .chain_update(target)
}

fn parse(signed: &str) -> Option<(Identity, i64)> {
    let rest = signed.strip_prefix("v1;account=")?;
    let (account, rest) = rest.split_once(";key=")?;
    let (key, rest) = rest.split_once(";plan=")?;
    let (plan, expires) = rest.split_once(";exp=")?;
    let identity = Identity {
        account: account.parse().ok()?,
        key: key.parse().ok()?,
        plan: plan.parse().ok()?,
    };
    Some((identity, expires.parse().ok()?))
}

#[cfg(test)]
mod tests;
