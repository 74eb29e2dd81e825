//! `Authorization: Bearer <API_KEY>` (specification §5.1): from header fields to a parsed key.
//!
//! Never from the query, a cookie or another header. The faults of a key are not distinguished: the difference would
//! help only a guesser.

use http::header::{AUTHORIZATION, HeaderMap};
use water_domain::{KeyPrefix, PlainKey};

/// Reason that no key could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CredentialsError {
    /// No `Authorization`, or another scheme than `Bearer`.
    Missing,
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
    let rest = after_scheme(field.as_bytes()).ok_or(CredentialsError::Missing)?;
    let token = after_spaces(rest).ok_or(CredentialsError::Malformed)?;
    PlainKey::parse(token, prefix).map_err(|_| CredentialsError::Malformed)
}

/// Returns the text after the word `Bearer`, if that is the whole scheme: `Bearer2 x` has another one.
fn after_scheme(field: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = field.split_at_checked(b"bearer".len())?;
    let ends_here = rest.first().is_none_or(|byte| !is_token_character(*byte));
    (scheme.eq_ignore_ascii_case(b"bearer") && ends_here).then_some(rest)
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
