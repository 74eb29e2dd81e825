//! The query, read strictly: parameters that cannot be decoded or are repeated are refused, not guessed.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use water_domain::departement::{self, DepartementError};
use water_domain::{Departement, Page};

use crate::Problem;
use crate::problem::texts;

/// Decoded parameters in the order of the query. Values that needed no decoding are borrowed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    /// Decodes the text after `?`. Malformed percent-encoding, invalid UTF-8 or a NUL anywhere is `invalid_query`, in
    /// unused parameters too. `+` is a space, `%2B` is a plus sign.
    pub fn parse(query: Option<&'a str>) -> Result<Self, Problem> {
        let pieces = query.unwrap_or_default().split('&');
        let decoded = pieces.filter(|piece| !piece.is_empty()).map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            Some((decode(name)?, decode(value)?))
        });
        let pairs: Option<Vec<_>> = decoded.collect();
        pairs.map(Self).ok_or_else(Problem::invalid_query)
    }

    /// Makes an owned copy, which may outlive the request's target.
    pub fn into_owned(self) -> Query<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Query(
            self.0
                .into_iter()
                .map(|(name, value)| (own(name), own(value)))
                .collect(),
        )
    }

    /// Returns all parameters.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Returns the value of a parameter; a repeated one, even with the same value, is `invalid_parameter`.
    pub fn get(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        let mut values = self.pairs().filter(|(other, _)| *other == name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value.map(|(_, value)| value)),
            _ => Err(Problem::invalid_parameter(name, texts::given_once(name))),
        }
    }

    /// Returns the parameter `dept` (specification §4.1). A code without a département is `not_found`.
    pub fn departement(&self) -> Result<Option<&'static Departement>, Problem> {
        let Some(text) = self.get("dept")? else {
            return Ok(None);
        };
        departement::parse(text).map(Some).map_err(|error| {
            let detail = texts::no_departement(&error);
            match error {
                DepartementError::Malformed => Problem::invalid_parameter("dept", detail),
                DepartementError::Unknown { .. } => Problem::not_found(detail),
            }
        })
    }

    /// Returns the parameters `limit` and `offset` (specification §4.3).
    pub fn page(&self) -> Result<Page, Problem> {
        Page::parse(self.get("limit")?, self.get("offset")?)
            .map_err(|error| Problem::invalid_parameter(error.parameter(), texts::page_rule(error)))
    }
}

/// Decodes form encoding; `None` if it is malformed.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
        if byte == b'%' && !(hex(bytes.next()) && hex(bytes.next())) {
            return None;
        }
    }
    let spaced = if text.contains('+') {
        text.replace('+', " ")
    } else {
        return without_nul(percent_decode_str(text).decode_utf8().ok()?);
    };
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    without_nul(Cow::Owned(decoded.into_owned()))
}

fn without_nul(text: Cow<'_, str>) -> Option<Cow<'_, str>> {
    (!text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use percent_encoding::NON_ALPHANUMERIC;
    use proptest::prelude::*;

    use super::*;
    use crate::Code;

    fn query(text: &str) -> Query<'_> {
        Query::parse(Some(text)).unwrap()
    }

    #[test]
    fn what_cannot_be_decoded_is_refused_wherever_it_stands() {
        for bad in [
            "%", "a=%4", "x=%zz", "%g1=1", "a=%ff", "a=%c0%af", "a=1&b=%", "a=%00", "a=%+1",
        ] {
            let problem = Query::parse(Some(bad)).unwrap_err();
            assert_eq!(problem.code(), Code::InvalidQuery, "{bad}");
        }
    }

    #[test]
    fn names_and_values_are_decoded_once() {
        let pairs: Vec<_> = query("a%62=c%2Bd+e&&flag&x=%2525")
            .pairs()
            .map(own)
            .collect();
        assert_eq!(
            pairs,
            [own(("ab", "c+d e")), own(("flag", "")), own(("x", "%25"))]
        );
    }

    fn own((name, value): (&str, &str)) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_repeated_parameter_is_refused_and_others_are_ignored() {
        let twice = query("limit=5&limit=5&other=1&other=2");
        assert_eq!(
            twice.get("limit").unwrap_err().code(),
            Code::InvalidParameter
        );
        assert_eq!(twice.page().unwrap_err().code(), Code::InvalidParameter);
        assert_eq!(query("other=1&other=2&Limit=9").page().unwrap().limit, 20);
    }

    #[test]
    fn an_encoded_sign_stays_a_sign() {
        for bad in [
            "limit=%2B5",
            "limit=+5",
            "limit=",
            "limit",
            "offset=-1",
            "limit=5%20",
        ] {
            assert_eq!(
                query(bad).page().unwrap_err().code(),
                Code::InvalidParameter,
                "{bad}"
            );
        }
        assert_eq!(query("limit=05&offset=%31%30").page().unwrap().offset, 10);
    }

    #[test]
    fn a_departement_is_malformed_or_unknown_or_found() {
        assert_eq!(query("").departement().unwrap(), None);
        assert_eq!(query("dept=2a").departement().unwrap().unwrap().code, "2A");
        let code = |text| query(text).departement().unwrap_err().code();
        assert_eq!(code("dept=xx"), Code::InvalidParameter);
        assert_eq!(code("dept="), Code::InvalidParameter);
        assert_eq!(code("dept=20"), Code::NotFound);
    }

    proptest! {
        #[test]
        fn what_a_client_encodes_is_what_is_read(name in "[^\0]{1,8}", value in "[^\0]{0,8}") {
            let encode = |text| percent_encoding::utf8_percent_encode(text, NON_ALPHANUMERIC);
            let text = format!("{}={}", encode(&name), encode(&value));
            let decoded = query(&text).into_owned();
            prop_assert_eq!(decoded.pairs().collect::<Vec<_>>(), [(name.as_str(), value.as_str())]);
        }
    }
}
