//! The identity provider's signing keys (RFC 7517), as they were last told.

use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::failure::ProviderError;

/// How long told keys count; those that are gone by then are forgotten.
const FRESH: Duration = Duration::from_mins(10);
/// Between two questions for keys that are too old.
const REST: Duration = Duration::from_secs(2);
/// Between two questions for a key that is not among them.
const UNKNOWN: Duration = Duration::from_mins(1);

/// Who asks for an unknown key. Each may once a minute, so that one cannot use up what the other
/// needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Budget {
    /// People who sign in.
    Callbacks,
    /// The provider, or whoever posts what looks like a logout token.
    Logouts,
}

/// The keys, and when they were asked for.
#[derive(Default, Debug)]
pub struct Keys {
    told: Vec<Key>,
    at: Option<Instant>,
    /// When old keys were last asked for, whatever came of it.
    asked: Option<Instant>,
    /// By budget.
    unknown: [Option<Instant>; 2],
}

/// One key, and the one algorithm that it is used with.
#[derive(Clone)]
pub struct Key {
    kid: String,
    /// Of the key's own family: a token does not choose.
    pub algorithm: Algorithm,
    /// The public key.
    pub public: DecodingKey,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl Keys {
    /// Whether the provider is to be asked before a key of this name is looked up. Asking uses the
    /// budget, whatever comes of it.
    pub fn must_ask(&mut self, kid: &str, budget: Budget, now: Instant) -> bool {
        let old = |at: Option<Instant>, age| at.is_none_or(|at| now.duration_since(at) >= age);
        if old(self.at, FRESH) {
            let rested = old(self.asked, REST);
            self.asked = Some(self.asked.filter(|_| !rested).unwrap_or(now));
            return rested;
        }
        let unknown = &mut self.unknown[budget as usize];
        if self.told.iter().any(|key| key.kid == kid) || !old(*unknown, UNKNOWN) {
            return false;
        }
        *unknown = Some(now);
        true
    }

    /// Takes a key set in place of the one before. Keys of other kinds and for other uses are left
    /// out.
    pub fn learn(&mut self, text: &[u8], now: Instant) -> Result<(), ProviderError> {
        let set: KeySet = serde_json::from_slice(text)
            .map_err(|_| ProviderError::Malformed("the provider's key set"))?;
        self.told = set.keys.into_iter().filter_map(Key::read).collect();
        self.at = Some(now);
        Ok(())
    }

    /// The key of this name; none where the keys are too old to be believed.
    pub fn find(&self, kid: &str, now: Instant) -> Option<&Key> {
        let fresh = self.at.is_some_and(|at| now.duration_since(at) < FRESH);
        let mut named = self.told.iter().filter(|key| key.kid == kid);
        named.next().filter(|_| fresh)
    }
}

impl Key {
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        if matches!(&jwk.common.public_key_use, Some(used) if *used != PublicKeyUse::Signature) {
            return None;
        }
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                Algorithm::ES256
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                Algorithm::EdDSA
            }
            _ => return None,
        };
        let declared = jwk
            .common
            .key_algorithm
            .map(|declared| declared.to_string());
        if declared.is_some_and(|declared| declared != format!("{algorithm:?}")) {
            return None;
        }
        Some(Self {
            public: DecodingKey::from_jwk(&jwk).ok()?,
            kid: jwk.common.key_id?,
            algorithm,
        })
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keys(keys: Value) -> Keys {
        let mut known = Keys::default();
        let text = json!({ "keys": keys }).to_string();
        known.learn(text.as_bytes(), Instant::now()).unwrap();
        known
    }

    fn ed25519(kid: &str) -> Value {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": x})
    }

    fn with(mut key: Value, name: &str, value: &str) -> Value {
        key[name] = json!(value);
        key
    }

    #[test]
    fn a_key_has_the_one_algorithm_of_its_family() {
        let known = keys(json!([ed25519("a")]));
        assert_eq!(known.told[0].algorithm, Algorithm::EdDSA);
    }

    #[test]
    fn keys_for_other_uses_are_left_out_and_harm_no_others() {
        let known = keys(json!([
            with(ed25519("a"), "use", "enc"),
            with(ed25519("b"), "alg", "RS256"),
            with(ed25519("c"), "crv", "Ed448"),
            {"kty": "oct", "kid": "d", "k": "c2VjcmV0"},
            {"kty": "new", "kid": "e"},
            "no key",
            with(ed25519("f"), "use", "sig"),
        ]));
        let names: Vec<_> = known.told.iter().map(|key| key.kid.as_str()).collect();
        assert_eq!(names, ["f"]);
    }

    #[test]
    fn keys_are_asked_for_every_ten_minutes_and_unknown_ones_once_a_minute() {
        let mut known = keys(json!([ed25519("a")]));
        let start = known.at.unwrap();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(Keys::default().must_ask("a", Budget::Callbacks, start));
        assert!(!known.must_ask("a", Budget::Callbacks, at(599)));
        assert!(known.must_ask("b", Budget::Callbacks, at(1)));
        assert!(!known.must_ask("b", Budget::Callbacks, at(60)));
        assert!(known.must_ask("b", Budget::Logouts, at(2)));
        assert!(!known.must_ask("c", Budget::Logouts, at(61)));
        assert!(known.must_ask("c", Budget::Callbacks, at(61)));
        assert!(known.must_ask("a", Budget::Callbacks, at(600)));
    }
}
