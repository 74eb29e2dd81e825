//! Failures of the identity provider, and of what it sent.

/// Reason for which nobody can be signed in or out by the provider now. Prints no token, code or secret.
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
    /// A status that is no verdict on the request.
    #[error("the identity provider answered {0}")]
    Status(u16),
    /// Refusal of the code or the client, by the word of RFC 6749 §5.2.
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
    /// A token of a key that is not known, when its like was asked for too often.
    #[error("the token's key is not known, and the provider was asked for unknown keys too often")]
    UnknownKey,
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
            Self::UnknownKey => "unknown_key",
            Self::Token(error) => error.as_str(),
        }
    }

    /// Returns the word by which the provider refused the portal itself, not a person's code: its client id
    /// or its secret is not what the provider has, or the client may not do this (RFC 6749 §5.2).
    pub fn refusal_of_client(&self) -> Option<&'static str> {
        match self {
            Self::Refused(word @ ("invalid_client" | "unauthorized_client")) => Some(word),
            _ => None,
        }
    }

    /// Whether to ask the provider again later: it said nothing against this request.
    pub fn is_away(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::Token(_))
    }
}

/// The check that a token fails. Repeats no part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TokenError {
    /// Over 16 KiB.
    #[error("it has more than 16 KiB")]
    Large,
    /// No header of a signed token, or one that demands what is unknown (`crit`).
    #[error("its header cannot be read")]
    Header,
    /// An algorithm that is not RS256, ES256 or EdDSA, or not that of the key.
    #[error("its algorithm is not that of the provider's key")]
    Algorithm,
    /// No `kid`, or one that the provider's key set lacks.
    #[error("its key is none of the provider's")]
    Key,
    /// A signature that is not that key's.
    #[error("its signature is wrong")]
    Signature,
    /// An `iss` that is another one.
    #[error("its issuer is another one")]
    Issuer,
    /// `aud` without us, or several and an `azp` that is not ours.
    #[error("it is meant for another client")]
    Audience,
    /// No `exp`, or one that has passed.
    #[error("it has expired")]
    Expired,
    /// No `iat`, or `iat` or `nbf` yet to come.
    #[error("it is not valid yet")]
    Early,
    /// A `nonce` that is another one, or one where none may be.
    #[error("its nonce is not that of this sign-in")]
    Nonce,
    /// `events` where none may be, or not that of a logout.
    #[error("it is a token of another kind")]
    Kind,
    /// A `sub`, `sid` or `jti` that is missing, empty or too long.
    #[error("its subject, session or id is missing or too long")]
    Name,
}

impl TokenError {
    /// A stable word for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Large => "token_large",
            Self::Header => "token_header",
            Self::Algorithm => "token_algorithm",
            Self::Key => "token_key",
            Self::Signature => "token_signature",
            Self::Issuer => "token_issuer",
            Self::Audience => "token_audience",
            Self::Expired => "token_expired",
            Self::Early => "token_early",
            Self::Nonce => "token_nonce",
            Self::Kind => "token_kind",
            Self::Name => "token_name",
        }
    }
}
