//! The 101 départements, and the reading of a code that a client writes.
//!
//! Names come from this compiled list and never from a loaded file.

use std::fmt;
use std::sync::LazyLock;

static DEPARTEMENTS: LazyLock<Vec<Departement>> = LazyLock::new(|| {
    rows(include_str!("../data/departements.csv"))
        .map(|(code, name)| Departement { code, name })
        .collect()
});

static COLLECTIVITES: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| rows(include_str!("../data/collectivites.csv")).collect());

/// The first two fields of each row below the header; none of them is quoted.
fn rows(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.lines().skip(1).filter_map(|row| {
        let mut fields = row.split(',');
        Some((fields.next()?, fields.next()?))
    })
}

/// A French département.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Departement {
    /// `01` to `95` without `20`, `2A`, `2B`, `971` to `974`, `976`.
    pub code: &'static str,
    /// Official name, such as `Hérault`.
    pub name: &'static str,
}

/// Reason for which a text names no département.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DepartementError {
    /// The text does not have the form of a code.
    #[error("a département code is two digits, 2A, 2B, or three digits that begin with 97 or 98")]
    Malformed,
    /// The text has the form of a code, and there is no such département.
    #[error("there is no such département{}", .hint.map(|hint| format!(": {hint}")).unwrap_or_default())]
    Unknown {
        /// Explanation of the code, if it once was or looks like a département's.
        hint: Option<Hint>,
    },
}

/// Explanation of a code that names no département.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// `20`, the code of Corsica until 1976.
    Corsica,
    /// Code of an overseas collectivité.
    Collectivite {
        /// The code.
        code: &'static str,
        /// Name of the collectivité.
        name: &'static str,
    },
    /// Another code that begins with `97` or `98`, which are overseas; these two digits by themselves, too.
    Overseas,
}

impl fmt::Display for Hint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corsica => formatter
                .write_str("Corsica has been 2A (Corse-du-Sud) and 2B (Haute-Corse) since 1976"),
            Self::Collectivite { code, name } => write!(
                formatter,
                "{code} is {name}, an overseas collectivité and not a département"
            ),
            Self::Overseas => formatter.write_str(
                "the overseas départements are 971 to 974 and 976; the collectivités have no record",
            ),
        }
    }
}

/// Returns the départements in ASCII order of their codes: … 19, 21 … 29, 2A, 2B, 30 … 95, 971 … 976.
pub fn all() -> &'static [Departement] {
    &DEPARTEMENTS
}

/// Reads a code; `1` is `01` and `2a` is `2A`.
pub fn parse(text: &str) -> Result<&'static Departement, DepartementError> {
    let code = normalise(text).ok_or(DepartementError::Malformed)?;
    match DEPARTEMENTS.binary_search_by_key(&code.as_str(), |departement| departement.code) {
        Ok(index) => Ok(&DEPARTEMENTS[index]),
        Err(_) => Err(DepartementError::Unknown { hint: hint(&code) }),
    }
}

fn normalise(text: &str) -> Option<String> {
    match text.as_bytes() {
        [digit @ b'0'..=b'9'] => Some(format!("0{}", char::from(*digit))),
        [b'2', b'a' | b'A' | b'b' | b'B'] => Some(text.to_ascii_uppercase()),
        [b'0'..=b'9', b'0'..=b'9'] | [b'9', b'7' | b'8', b'0'..=b'9'] => Some(text.to_owned()),
        _ => None,
    }
}

fn hint(code: &str) -> Option<Hint> {
    if code == "20" {
        return Some(Hint::Corsica);
    }
    match COLLECTIVITES.iter().find(|(other, _)| *other == code) {
        Some(&(code, name)) => Some(Hint::Collectivite { code, name }),
        None if code.starts_with("97") || code.starts_with("98") => Some(Hint::Overseas),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_101_in_ascii_order() {
        assert_eq!(all().len(), 101);
        assert!(all().is_sorted_by(|one, next| one.code < next.code));
    }

    #[test]
    fn short_and_lower_case_codes_are_completed() {
        for (text, code) in [
            ("1", "01"),
            ("01", "01"),
            ("2a", "2A"),
            ("2B", "2B"),
            ("976", "976"),
        ] {
            assert_eq!(parse(text).unwrap().code, code);
        }
        assert_eq!(parse("34").unwrap().name, "Hérault");
    }

    #[test]
    fn a_code_without_a_departement_is_unknown_and_other_text_is_malformed() {
        for unknown in ["0", "00", "96", "99", "970", "979", "989"] {
            assert!(
                matches!(parse(unknown), Err(DepartementError::Unknown { .. })),
                "{unknown}"
            );
        }
        for bad in [
            "", "2c", "001", "100", "960", "9710", "a", "é", "+1", " 1", "٣٤",
        ] {
            assert_eq!(parse(bad), Err(DepartementError::Malformed), "{bad}");
        }
    }

    #[test]
    fn corsica_and_codes_of_overseas_get_a_hint_and_others_none() {
        assert_eq!(
            parse("20").unwrap_err().to_string(),
            "there is no such département: Corsica has been 2A (Corse-du-Sud) and 2B (Haute-Corse) since 1976"
        );
        assert_eq!(
            parse("975").unwrap_err().to_string(),
            "there is no such département: 975 is Saint-Pierre-et-Miquelon, \
             an overseas collectivité and not a département"
        );
        for overseas in ["97", "98", "970", "979", "980"] {
            assert_eq!(
                parse(overseas).unwrap_err().to_string(),
                "there is no such département: the overseas départements are 971 to 974 and 976; \
                 the collectivités have no record",
                "{overseas}"
            );
        }
        for other in ["00", "96", "99"] {
            let unknown = DepartementError::Unknown { hint: None };
            assert_eq!(parse(other), Err(unknown), "{other}");
        }
    }
}
