//! `Authorization: Bearer <API_KEY>` (specification §5.1): from header fields to a parsed key.
//!
//! Never from the query, a cookie or another header. What is wrong with a key is not told apart:
//! the difference would help only a guesser.

use http::header::{AUTHORIZATION, HeaderMap};
use water_domain::{KeyPrefix, PlainKey};

/// Why no key could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CredentialsError {
    /// No `Authorization`, or another scheme than `Bearer`.
    Missing,
    /// More than one `Authorization`: two parties could read two different keys.
    Repeated,
    /// `Bearer`, but what follows cannot be a key.
    Malformed,
}

/// The key that a request presents. The scheme is case-insensitive (RFC 9110 §11.1).
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

/// What follows the word `Bearer`, where that is the whole scheme: `Bearer2 x` is another one.
fn after_scheme(field: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = field.split_at_checked(b"bearer".len())?;
    let ends_here = rest.first().is_none_or(|byte| !is_token_character(*byte));
    (scheme.eq_ignore_ascii_case(b"bearer") && ends_here).then_some(rest)
}

/// One or more spaces separate the scheme from the key; a tab does not.
fn after_spaces(rest: &[u8]) -> Option<&[u8]> {
    let token = rest.iter().position(|byte| *byte != b' ')?;
    (token > 0).then(|| &rest[token..])
}

/// RFC 9110 §5.6.2: what a scheme's name may consist of.
fn is_token_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(fields: &[&[u8]]) -> Result<String, CredentialsError> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(field).unwrap());
        }
        presented_key(&headers, &KeyPrefix::default()).map(|key| key.expose().to_owned())
    }

    fn key() -> String {
        PlainKey::generate(&KeyPrefix::default(), &[7; 48])
            .expose()
            .to_owned()
    }

    #[test]
    fn the_scheme_is_case_insensitive_and_followed_by_any_number_of_spaces() {
        for scheme in ["Bearer ", "bearer ", "BEARER ", "BeArEr    "] {
            let field = format!("{scheme}{}", key());
            assert_eq!(read(&[field.as_bytes()]), Ok(key()), "{scheme}");
        }
    }

    #[test]
    fn no_header_and_another_scheme_are_missing_credentials() {
        assert_eq!(read(&[]), Err(CredentialsError::Missing));
        let bare = key();
        let fields = ["", "Basic eDp5", "Token x", "Bearer2 x", "Bear", &bare];
        for field in fields {
            let result = read(&[field.as_bytes()]);
            assert_eq!(result, Err(CredentialsError::Missing), "{field}");
        }
    }

    #[test]
    fn a_bearer_without_a_well_formed_key_is_malformed() {
        let (key, tab) = (key(), format!("Bearer\t{}", key()));
        let comma = format!("Bearer {key}, Bearer {key}");
        let spaced = format!("Bearer {key} x");
        let lower = format!("Bearer {}", key.to_lowercase());
        for field in ["Bearer", "Bearer ", &tab, &comma, &lower, &spaced] {
            let result = read(&[field.as_bytes()]);
            assert_eq!(result, Err(CredentialsError::Malformed), "{field}");
        }
        assert_eq!(read(&[b"Bearer \xff"]), Err(CredentialsError::Malformed));
    }

    #[test]
    fn a_key_of_another_length_may_be_one_that_was_brought_by_its_hash() {
        let key = key();
        for field in [format!("Bearer {key}0"), format!("Bearer {}", &key[..65])] {
            assert!(read(&[field.as_bytes()]).is_ok(), "{field}");
        }
    }

    #[test]
    fn two_authorization_fields_are_refused_even_when_identical() {
        let field = format!("Bearer {}", key());
        let twice = read(&[field.as_bytes(), field.as_bytes()]);
        assert_eq!(twice, Err(CredentialsError::Repeated));
    }
}
