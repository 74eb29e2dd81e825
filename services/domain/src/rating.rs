//! Letter codes: the risk rating of a département, and the host product's ratings of a company.

use std::fmt;
use std::str::FromStr;

use crate::text::validated_text;

/// The risk rating of a département, from `A` (lowest risk) to `E`.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum RiskRating {
    /// Lowest risk.
    A,
    /// Low risk.
    B,
    /// Medium risk.
    C,
    /// High risk.
    D,
    /// Highest risk.
    E,
}

/// Text that is no risk rating.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a risk rating is one of A, B, C, D, E")]
pub struct UnknownRating;

impl RiskRating {
    /// All ratings, the lowest risk first.
    pub const ALL: [Self; 5] = [Self::A, Self::B, Self::C, Self::D, Self::E];

    /// Returns the letter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::E => "E",
        }
    }

    /// Returns the rating of a record that has none, from its overall score (0 to 100) in five equal
    /// bands.
    pub fn from_overall(overall: f64) -> Self {
        match overall {
            score if score < 20.0 => Self::A,
            score if score < 40.0 => Self::B,
            score if score < 60.0 => Self::C,
            score if score < 80.0 => Self::D,
            _ => Self::E,
        }
    }
}

impl FromStr for RiskRating {
    type Err = UnknownRating;

    fn from_str(text: &str) -> Result<Self, UnknownRating> {
        Self::ALL
            .into_iter()
            .find(|rating| rating.as_str() == text)
            .ok_or(UnknownRating)
    }
}

impl fmt::Display for RiskRating {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

validated_text!(
    /// A rating of the host product in an account's history: opaque to this API.
    HistoryRating,
    InvalidHistoryRating,
    "rating",
    is_history_rating,
    "a rating is 1 to 8 upper-case letters, digits, '+' or '-', and begins with a letter",
    "^[A-Z][A-Z0-9+-]{0,7}$",
    8
);

fn is_history_rating(text: &str) -> bool {
    text.len() <= HistoryRating::MAX_LENGTH
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"+-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fifth_of_the_score_has_its_rating() {
        let ratings = [0.0, 20.0, 40.0, 60.0, 79.9, 80.0, 100.0].map(RiskRating::from_overall);
        use RiskRating::*;
        assert_eq!(ratings, [A, B, C, D, D, E, E]);
    }

    #[test]
    fn a_history_rating_is_a_short_upper_case_code() {
        for good in ["A", "B+", "AAA-", "A1234567"] {
            assert!(good.parse::<HistoryRating>().is_ok(), "{good}");
        }
        for bad in ["", "a", "1A", "A12345678", "A B"] {
            assert_eq!(
                bad.parse::<HistoryRating>(),
                Err(InvalidHistoryRating),
                "{bad}"
            );
        }
    }
}
