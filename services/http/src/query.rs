//! The query, read strictly: parameters that cannot be decoded or are repeated are refused, not guessed.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use water_domain::departement::{self, DepartementError};
use water_domain::{Departement, Page};

use crate::Problem;
use crate::problem::texts;

/// Least similarity by Jaro and Winkler of a misspelt name: `departement` has 0.851 with `dept`, `information` 0.848 with
/// `format`.
const LIKE: f64 = 0.85;
/// Least length of a name that is taken for the beginning or end of another.
const PART: usize = 4;

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

    /// Refuses a parameter that is not one of `known`, and names the one that was probably meant: without it the answer would be
    /// wider than was asked for. Names that caches and trackers add by themselves are let through: `_` and `utm_…`.
    pub fn only(&self, known: &[&'static str]) -> Result<(), Problem> {
        let is_unknown = |name: &&str| !known.contains(name) && !is_added(name);
        let mut names = self.pairs().map(|(name, _)| name);
        match names.find(is_unknown) {
            Some(name) => Err(Problem::unknown_parameter(
                name,
                nearest(name, known),
                known,
            )),
            None => Ok(()),
        }
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

/// Whether a cache or a tracker adds this parameter, without the client's doing.
fn is_added(name: &str) -> bool {
    name == "_" || name.starts_with("utm_")
}

/// Whether a name is the beginning or the end of another.
fn is_part(name: &str, other: &str) -> bool {
    name.len() >= PART && (other.starts_with(name) || other.ends_with(name))
}

/// Names before the brackets in which JSON:API has a parameter, as in `filter[dept]`.
const FAMILIES: [&str; 3] = ["", "filter", "page"];

/// Returns the parameter that a name was probably meant to be: the one that is most like it, or like what it has in
/// brackets.
fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let name = match name.split_once('[') {
        Some((family, rest)) if FAMILIES.contains(&family) => rest.trim_end_matches(']'),
        Some((before, _)) => before,
        None => name,
    };
    let name = bare(name);
    let singular = name.strip_suffix('s').unwrap_or(&name);
    let rated = known.iter().map(|known| {
        let bare = bare(known);
        (
            likeness(&name, &bare).max(likeness(singular, &bare)),
            *known,
        )
    });
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.and_then(|(likeness, known)| (likeness >= LIKE).then_some(known))
}

/// Returns a name without what is often written in another way: case, separators and accents.
fn bare(name: &str) -> String {
    let is_combined = |character: &char| ('\u{300}'..='\u{36f}').contains(character);
    let name = name.replace(['_', '-', '.'], "").to_lowercase();
    let letters = name.chars().filter(|character| !is_combined(character));
    letters.map(without_accent).collect()
}

/// Returns the plain letter of one with a French accent.
fn without_accent(letter: char) -> char {
    match letter {
        'à' | 'â' => 'a',
        'ç' => 'c',
        'é' | 'è' | 'ê' | 'ë' => 'e',
        'î' | 'ï' => 'i',
        'ô' => 'o',
        'ù' | 'û' | 'ü' => 'u',
        other => other,
    }
}

/// Rates how alike two bare names are: 1 if they are equal, nearly that if one begins or ends with the other.
fn likeness(name: &str, known: &str) -> f64 {
    if name == known {
        1.0
    } else if is_part(name, known) || is_part(known, name) {
        0.99
    } else {
        strsim::jaro_winkler(name, known)
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
    fn a_repeated_parameter_is_refused() {
        let twice = query("limit=5&limit=5");
        assert_eq!(
            twice.get("limit").unwrap_err().code(),
            Code::InvalidParameter
        );
        assert_eq!(twice.page().unwrap_err().code(), Code::InvalidParameter);
    }

    const HISTORY: &[&str] = &["limit", "offset", "cursor", "changedSince", "format"];

    #[test]
    fn a_parameter_that_a_route_does_not_have_is_refused_beside_right_ones_too() {
        for unknown in [
            "page",
            "limit=5&page=1",
            "%70age=1",
            "",
            "=1",
            "limit=1&Limit=1",
            "utm=1",
            "__=1",
        ] {
            let refused = query(unknown)
                .only(HISTORY)
                .map_err(|problem| problem.code());
            let expected = if unknown.is_empty() {
                Ok(())
            } else {
                Err(Code::InvalidParameter)
            };
            assert_eq!(refused, expected, "{unknown}");
        }
        for known in [
            "limit=5&offset=1&cursor=&changedSince=x&format",
            "_=1&utm_source=a&utm_=b",
            "l%69mit=1&limit=2",
        ] {
            assert!(query(known).only(HISTORY).is_ok(), "{known}");
        }
        assert!(query("dept=34").only(&[]).is_err());
    }

    #[test]
    fn the_parameter_that_was_meant_is_the_nearest_if_one_is_near() {
        let stress: &[_] = &["dept", "format"];
        for (name, known, meant) in [
            ("DEPT", stress, Some("dept")),
            ("dept[]", stress, Some("dept")),
            ("dept[0]", stress, Some("dept")),
            ("deptCode", stress, Some("dept")),
            ("departement", stress, Some("dept")),
            ("département", stress, Some("dept")),
            ("DÉPARTEMENTS", stress, Some("dept")),
            ("dept ", stress, Some("dept")),
            ("filter[dept]", stress, Some("dept")),
            ("de\u{301}partement", stress, Some("dept")),
            ("filter[name]", stress, None),
            ("sort[dept]", stress, None),
            ("Format", stress, Some("format")),
            ("code", stress, None),
            ("from", stress, None),
            ("information", stress, None),
            ("informations", stress, None),
            ("set", HISTORY, None),
            ("page", stress, None),
            ("", stress, None),
            ("changed_since", HISTORY, Some("changedSince")),
            ("changedsince", HISTORY, Some("changedSince")),
            ("changed-since", HISTORY, Some("changedSince")),
            ("since", HISTORY, Some("changedSince")),
            ("ofset", HISTORY, Some("offset")),
            ("limits", HISTORY, Some("limit")),
            ("page_limit", HISTORY, Some("limit")),
            ("page[limit]", HISTORY, Some("limit")),
            ("page[size]", HISTORY, None),
            ("per_page", HISTORY, None),
            ("page", HISTORY, None),
            ("size", HISTORY, None),
            ("dept", &[], None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
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
