//! The portal's registration at the identity provider: settings, and which of them are no use.

use std::str::FromStr;

use http::Uri;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use water_runtime::Secret;

/// The portal's registration.
#[derive(Clone, Debug)]
pub struct Client {
    /// Issuer of the tokens.
    pub issuer: Issuer,
    /// `client_id`.
    pub id: String,
    /// `client_secret`.
    pub secret: Secret<String>,
    /// Authority of the provider's certificate, where it is no public one.
    pub ca: Option<Authority>,
    /// Scopes of a sign-in.
    pub scopes: Scopes,
}

/// An issuer's identifier: an `https` URL without query and fragment, compared byte for byte
/// (OpenID Connect Discovery 1.0 §4.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issuer(Box<str>);

/// Text that is no issuer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an issuer is an https:// URL without query and fragment")]
pub struct InvalidIssuer;

/// The certificates of a private authority.
#[derive(Clone, Debug)]
pub struct Authority(RootCertStore);

/// Text without a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("it has no certificate in PEM")]
pub struct InvalidAuthority;

/// Words of RFC 6749 §3.3, `openid` among them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scopes(Box<str>);

/// Text that is no list of scopes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("scopes are words with spaces between them, and openid is one of them")]
pub struct InvalidScopes;

impl Issuer {
    /// Returns the issuer as it was set.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Issuer {
    type Err = InvalidIssuer;

    fn from_str(text: &str) -> Result<Self, InvalidIssuer> {
        let uri: Uri = text.parse().map_err(|_| InvalidIssuer)?;
        let https = uri.scheme_str() == Some("https") && text.starts_with("https://");
        if https && !text.contains(['?', '#', '@']) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidIssuer)
        }
    }
}

impl Authority {
    /// Returns the certificates as a client of TLS takes them.
    pub fn roots(&self) -> &RootCertStore {
        &self.0
    }
}

impl FromStr for Authority {
    type Err = InvalidAuthority;

    fn from_str(text: &str) -> Result<Self, InvalidAuthority> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
            let certificate = certificate.map_err(|_| InvalidAuthority)?;
            roots.add(certificate).map_err(|_| InvalidAuthority)?;
        }
        if roots.is_empty() {
            Err(InvalidAuthority)
        } else {
            Ok(Self(roots))
        }
    }
}

impl Scopes {
    /// Returns the scopes with one space between them.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Scopes {
    type Err = InvalidScopes;

    fn from_str(text: &str) -> Result<Self, InvalidScopes> {
        let scopes: Vec<_> = text.split_ascii_whitespace().collect();
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if plain && !text.contains(['"', '\\']) && scopes.contains(&"openid") {
            Ok(Self(scopes.join(" ").into()))
        } else {
            Err(InvalidScopes)
        }
    }
}
