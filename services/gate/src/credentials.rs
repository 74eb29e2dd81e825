//! `Authorization: Bearer <API_KEY>` (specification §5.1): from header fields to a parsed key.
//!
//! Never from the query, a cookie or another header. The faults of a key are not distinguished: the difference would
//! help only a guesser.

use http::header::{AUTHORIZATION, HeaderMap};
use water_domain::{KeyPrefix, PlainKey};

/// Names of schemes that a refusal repeats: those of IANA's registry of HTTP authentication schemes without `Bearer`,
/// then common ones that are not registered.
static OTHER_SCHEMES: [&str; 21] = [
    "Basic",
    "Concealed",
    "Digest",
    "DPoP",
    "GNAP",
    "HOBA",
    "Mutual",
    "Negotiate",
    "OAuth",
    "PrivateToken",
    "SCRAM-SHA-1",
    "SCRAM-SHA-256",
    "vapid",
    "Api-Key",
    "ApiKey",
    "AWS4-HMAC-SHA256",
    "Hawk",
    "JWT",
    "Key",
    "NTLM",
    "Token",
];

/// Reason that no key could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CredentialsError {
    /// No `Authorization`.
    Missing,
    /// Another scheme than `Bearer`; its name, if that is a known one.
    OtherScheme(Option<&'static str>),
    /// More than one `Authorization`: two parties could read two different keys.
    Repeated,
    /// `Bearer`, but with text that cannot be a key.
    Malformed,
}

/// Returns the key that a request presents. The scheme is case-insensitive (RFC 9110 §11.1).
pub fn presented_key<'a>(
    headers: &'a HeaderMap,
    prefix: &KeyPrefix,
) -> Result<PlainKey<'a>, CredentialsError> {
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let field = fields.next().ok_or(CredentialsError::Missing)?;
    if fields.next().is_some() {
        return Err(CredentialsError::Repeated);
    }
    let field = field.as_bytes();
    let rest =
        after_scheme(field).ok_or_else(|| CredentialsError::OtherScheme(other_scheme(field)))?;
    let token = after_spaces(rest).ok_or(CredentialsError::Malformed)?;
    PlainKey::parse(token, prefix).map_err(|_| CredentialsError::Malformed)
}

/// Returns the text after the word `Bearer`, if that is the whole scheme: `Bearer2 x` has another one.
fn after_scheme(field: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = field.split_at_checked(b"bearer".len())?;
    let ends_here = rest.first().is_none_or(|byte| !is_token_character(*byte));
    (scheme.eq_ignore_ascii_case(b"bearer") && ends_here).then_some(rest)
}

/// Returns the known scheme that is the text's first word, before a space or tab: other text may be a key that was sent
/// without a scheme, or begin with a part of one.
fn other_scheme(field: &[u8]) -> Option<&'static str> {
    let word = field.split(|byte| matches!(*byte, b' ' | b'\t')).next()?;
    let mut known = OTHER_SCHEMES.iter().copied();
    known.find(|scheme| scheme.as_bytes().eq_ignore_ascii_case(word))
}

/// Skips the spaces, one or more, that separate the scheme from the key; a tab does not.
fn after_spaces(rest: &[u8]) -> Option<&[u8]> {
    let token = rest.iter().position(|byte| *byte != b' ')?;
    (token > 0).then(|| &rest[token..])
}

/// Whether a scheme's name may have this character (RFC 9110 §5.6.2).
fn is_token_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_scheme_is_named_as_in_the_list_and_other_text_is_not_repeated() {
        for (field, named) in [
            ("Basic eDp5", Some("Basic")),
            ("bASIC eDp5, Bearer x", Some("Basic")),
            ("Basic\tx", Some("Basic")),
            ("digest", Some("Digest")),
            ("scram-sha-256  x", Some("SCRAM-SHA-256")),
            ("APIKEY x", Some("ApiKey")),
            ("api-key x", Some("Api-Key")),
            ("jwt x", Some("JWT")),
            ("key x", Some("Key")),
            ("Key: x", None),
            ("", None),
            (" Basic", None),
            ("Bear x", None),
            ("Basic2 x", None),
            ("Basic,x", None),
            ("wdk_0123456789ab", None),
            ("wdk_0123456789ab x", None),
            ("Token/that+is.a~key=", None),
            ("Basic-0123456789abcdef x", None),
        ] {
            assert_eq!(other_scheme(field.as_bytes()), named, "{field}");
        }
    }
}
