//! Why the identity provider, or what it sent, is no use.

use super::token::TokenError;

/// Why nobody can be signed in or out by the provider now. Prints no token, code or secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProviderError {
    /// No connection, or one that broke.
    #[error("the identity provider cannot be reached: {0}")]
    Unreachable(String),
    /// No whole answer in time.
    #[error("the identity provider did not answer in time")]
    Slow,
    /// An answer beyond what is read.
    #[error("the identity provider's answer is too large")]
    Large,
    /// A status that says nothing of the request.
    #[error("the identity provider answered {0}")]
    Status(u16),
    /// It refused the code or the client, by the word of RFC 6749 §5.2.
    #[error("the identity provider refused the exchange: {0}")]
    Refused(&'static str),
    /// An answer of another form than the specification says.
    #[error("{0} cannot be read")]
    Malformed(&'static str),
    /// The issuer says that it is another one.
    #[error("the discovery document names another issuer than WATER_OIDC_ISSUER")]
    OtherIssuer,
    /// An endpoint without https.
    #[error("the discovery document names an address that is not https")]
    Insecure,
    /// A token that fails a check.
    #[error("the token is refused: {0}")]
    Token(#[from] TokenError),
}

impl ProviderError {
    /// A stable word for logs and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "provider_unreachable",
            Self::Slow => "provider_slow",
            Self::Large => "provider_answer_large",
            Self::Status(_) => "provider_status",
            Self::Refused(word) => word,
            Self::Malformed(_) => "provider_malformed",
            Self::OtherIssuer => "provider_other_issuer",
            Self::Insecure => "provider_insecure",
            Self::Token(error) => error.as_str(),
        }
    }

    /// Whether the provider is to be asked again later: it said nothing against this request.
    pub fn is_away(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::Token(_))
    }
}
