//! The drought alert level of a département: a legal state, independent of the stress index.

use std::fmt;
use std::str::FromStr;

/// The national drought register's levels, in ascending order.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// No restriction.
    Normal,
    /// Information and incitement to save water.
    Vigilance,
    /// First restrictions.
    Alerte,
    /// Stronger restrictions.
    AlerteRenforcee,
    /// Priority uses only.
    Crise,
}

/// Text that names no level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a level is one of normal, vigilance, alerte, alerte_renforcee, crise")]
pub struct UnknownLevel;

impl Level {
    /// The levels in ascending order.
    pub const ALL: [Self; 5] = [
        Self::Normal,
        Self::Vigilance,
        Self::Alerte,
        Self::AlerteRenforcee,
        Self::Crise,
    ];

    /// Returns the register's spelling, as the API answers it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Vigilance => "vigilance",
            Self::Alerte => "alerte",
            Self::AlerteRenforcee => "alerte_renforcee",
            Self::Crise => "crise",
        }
    }

    /// Returns the level for a département that has none: the five integer bands of the stress index (0
    /// to 5), after Aqueduct 4.0's water stress score.
    pub fn from_stress_index(stress_index: f64) -> Self {
        match stress_index {
            index if index < 1.0 => Self::Normal,
            index if index < 2.0 => Self::Vigilance,
            index if index < 3.0 => Self::Alerte,
            index if index < 4.0 => Self::AlerteRenforcee,
            _ => Self::Crise,
        }
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    /// Reads a slug (`alerte_renforcee`) or a label (`Alerte renforcée`).
    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        let slug = text
            .to_lowercase()
            .replace([' ', '-'], "_")
            .replace('é', "e");
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == slug)
            .ok_or(UnknownLevel)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_from_its_slug_and_from_its_label() {
        for text in [
            "alerte_renforcee",
            "Alerte renforcée",
            "ALERTE RENFORCÉE",
            "alerte-renforcee",
        ] {
            assert_eq!(text.parse(), Ok(Level::AlerteRenforcee), "{text}");
        }
        for bad in ["", "alert", "rouge"] {
            assert_eq!(bad.parse::<Level>(), Err(UnknownLevel), "{bad}");
        }
    }

    #[test]
    fn each_integer_band_of_the_index_has_its_level() {
        let bands = [0.0, 0.99, 1.0, 2.0, 3.0, 4.0, 5.0].map(Level::from_stress_index);
        use Level::*;
        assert_eq!(
            bands,
            [
                Normal,
                Normal,
                Vigilance,
                Alerte,
                AlerteRenforcee,
                Crise,
                Crise
            ]
        );
    }
}
