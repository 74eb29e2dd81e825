//! Signatures of tokens, verified by `ring` behind `jsonwebtoken`.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

/// The three algorithms, and no signer.
static RING: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `jsonwebtoken` verify by `ring` in this process.
pub fn install() {
    // Refused where it is installed already.
    let _ = RING.install_default();
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    match algorithm {
        Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA => Ok(Box::new(Verifier {
            algorithm: *algorithm,
            key: key.clone(),
        })),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

struct Verifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Verifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl signature::Verifier<Vec<u8>> for Verifier {
    fn verify(
        &self,
        message: &[u8],
        signed: &Vec<u8>,
    ) -> std::result::Result<(), signature::Error> {
        let verified = match (self.algorithm, self.key.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signed)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signed)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signed)
            }
            _ => return Err(signature::Error::new()),
        };
        verified.map_err(|_| signature::Error::new())
    }
}
