//! The identity provider's signing keys (RFC 7517), as they were last read.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::failure::ProviderError;

/// The signing keys of a key set.
#[derive(Debug)]
pub struct KeySet(Vec<Key>);

/// A key, and the one algorithm that it is used with.
#[derive(Clone)]
pub struct Key {
    kid: String,
    /// Algorithm of the key's own family: a token does not choose.
    pub algorithm: Algorithm,
    /// The public key.
    pub public: DecodingKey,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a key set. Keys of other kinds and for other uses are left out.
    pub fn read(text: &[u8]) -> Result<Self, ProviderError> {
        let document: Document = serde_json::from_slice(text)
            .map_err(|_| ProviderError::Malformed("the provider's key set"))?;
        Ok(Self(
            document.keys.into_iter().filter_map(Key::read).collect(),
        ))
    }

    /// Returns the key of this name.
    pub fn find(&self, kid: &str) -> Option<&Key> {
        self.0.iter().find(|key| key.kid == kid)
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

    fn keys(keys: Value) -> KeySet {
        let text = json!({ "keys": keys }).to_string();
        KeySet::read(text.as_bytes()).unwrap()
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
        assert_eq!(known.0[0].algorithm, Algorithm::EdDSA);
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
        let names: Vec<_> = known.0.iter().map(|key| key.kid.as_str()).collect();
        assert_eq!(names, ["f"]);
    }
}
