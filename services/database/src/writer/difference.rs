//! Largest differences between the stored data and a file, which a dry run names.

use std::fmt;

use serde::Serialize;
use water_domain::{Level, Number};

/// Number of differences named for a column.
const NAMED: usize = 5;

/// A value before and after.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// The département's code; for a history `line 17` of the file, which names no account.
    pub record: String,
    /// The column in the API's spelling.
    pub column: &'static str,
    /// The stored value.
    pub before: Value,
    /// The file's value.
    pub after: Value,
}

/// A value that can move.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// An index or a score.
    Score(Number),
    /// An alert level.
    Level(Level),
}

impl Difference {
    /// The difference of one record's column, before and after.
    pub(super) fn new(record: impl Into<String>, column: &'static str, sides: [Value; 2]) -> Self {
        let [before, after] = sides;
        Self {
            record: record.into(),
            column,
            before,
            after,
        }
    }

    fn distance(&self) -> f64 {
        (self.after.place() - self.before.place()).abs()
    }
}

impl Value {
    /// Position of the value on its scale.
    fn place(self) -> f64 {
        match self {
            Self::Score(number) => number.get(),
            Self::Level(level) => f64::from(level as u8),
        }
    }
}

/// Returns the largest of one column's differences, without values that stay.
pub(super) fn largest(differences: impl Iterator<Item = Difference>) -> Vec<Difference> {
    let mut differences: Vec<_> = differences
        .filter(|difference| difference.before != difference.after)
        .collect();
    differences.sort_by(|one, other| other.distance().total_cmp(&one.distance()));
    differences.truncate(NAMED);
    differences
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            record,
            column,
            before,
            after,
        } = self;
        write!(formatter, "{record} {column} {before} → {after}")
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Score(number) => write!(formatter, "{}", number.get()),
            Self::Level(level) => level.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(score: f64) -> Value {
        Value::Score(Number::try_from(score).unwrap())
    }

    #[test]
    fn the_largest_come_first_and_what_stays_is_left_out() {
        let sides = [
            ("01", score(1.0), score(1.5)),
            ("02", score(3.0), score(3.0)),
            (
                "34",
                Value::Level(Level::Crise),
                Value::Level(Level::Normal),
            ),
        ];
        let differences = sides.map(|(code, old, new)| Difference::new(code, "x", [old, new]));
        let largest = largest(differences.into_iter());
        let named: Vec<_> = largest.iter().map(ToString::to_string).collect();
        assert_eq!(named, ["34 x crise → normal", "01 x 1 → 1.5"]);
    }
}
