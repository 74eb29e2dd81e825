//! The identity provider's metadata (OpenID Connect Discovery 1.0 §3).

use serde::Deserialize;

use super::client::Issuer;
use super::failure::ProviderError;
use super::wire::Wire;

/// The endpoints, and the parameters that they take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Endpoint at which people sign in.
    pub authorization_endpoint: String,
    /// Endpoint that exchanges a code.
    pub token_endpoint: String,
    /// Address of its keys.
    pub jwks_uri: String,
    /// Endpoint at which people sign out (RP-Initiated Logout 1.0), if it has that.
    pub end_session_endpoint: Option<String>,
    /// Whether the client's secret goes into a header; else into the form.
    pub takes_basic: bool,
    /// Whether each way back names the issuer (RFC 9207 §3).
    pub names_issuer: bool,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Document {
    fn addresses(&self) -> impl Iterator<Item = &String> {
        let optional = self.end_session_endpoint.iter();
        let required = [
            &self.authorization_endpoint,
            &self.token_endpoint,
            &self.jwks_uri,
        ];
        required.into_iter().chain(optional)
    }
}

impl Metadata {
    /// Asks for the discovery document.
    pub(super) async fn ask(wire: &Wire, issuer: &Issuer) -> Result<Self, ProviderError> {
        let base = issuer.as_str().trim_end_matches('/');
        let told = wire
            .get(&format!("{base}/.well-known/openid-configuration"))
            .await?;
        Self::read(&told, issuer)
    }

    fn read(text: &[u8], issuer: &Issuer) -> Result<Self, ProviderError> {
        let document: Document = serde_json::from_slice(text)
            .map_err(|_| ProviderError::Malformed("the discovery document"))?;
        if document.issuer != issuer.as_str() {
            return Err(ProviderError::OtherIssuer);
        }
        if !document
            .addresses()
            .all(|address| address.starts_with("https://"))
        {
            return Err(ProviderError::Insecure);
        }
        let methods = document.token_endpoint_auth_methods_supported;
        let basic = |methods: Vec<String>| methods.iter().any(|name| name == "client_secret_basic");
        Ok(Self {
            authorization_endpoint: document.authorization_endpoint,
            token_endpoint: document.token_endpoint,
            jwks_uri: document.jwks_uri,
            end_session_endpoint: document.end_session_endpoint,
            takes_basic: methods.is_none_or(basic),
            names_issuer: document.authorization_response_iss_parameter_supported,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn document(change: impl FnOnce(&mut Value)) -> Result<Metadata, ProviderError> {
        let mut document = json!({
            "issuer": "https://id.example.org/dex",
            "authorization_endpoint": "https://id.example.org/dex/auth",
            "token_endpoint": "https://id.example.org/dex/token",
            "jwks_uri": "https://id.example.org/dex/keys",
        });
        change(&mut document);
        let issuer = "https://id.example.org/dex".parse().unwrap();
        Metadata::read(document.to_string().as_bytes(), &issuer)
    }

    #[test]
    fn a_document_without_extras_takes_the_secret_in_a_header() {
        let metadata = document(|_| {}).unwrap();
        assert!(metadata.takes_basic && !metadata.names_issuer);
        assert_eq!(metadata.end_session_endpoint, None);
        let post = document(|it| {
            it["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
        });
        assert!(!post.unwrap().takes_basic);
    }

    #[test]
    fn a_document_of_another_issuer_or_with_a_plain_address_is_refused() {
        let slash = document(|it| it["issuer"] = json!("https://id.example.org/dex/"));
        assert!(matches!(slash, Err(ProviderError::OtherIssuer)));
        for field in [
            "authorization_endpoint",
            "token_endpoint",
            "jwks_uri",
            "end_session_endpoint",
        ] {
            let plain = document(|it| it[field] = json!("http://id.example.org/x"));
            assert!(matches!(plain, Err(ProviderError::Insecure)), "{field}");
        }
        let missing = document(|it| it["jwks_uri"] = Value::Null);
        assert!(matches!(missing, Err(ProviderError::Malformed(_))));
    }
}
