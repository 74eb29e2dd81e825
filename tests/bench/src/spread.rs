//! The rounds' values of one figure, of which the median counts.

use serde::Serialize;

/// One figure over all rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The middle value; of an even number of rounds the lower of the two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many there are.
    pub rounds: usize,
}

impl Spread {
    /// `None` of no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        Some(Self {
            median: values[last / 2],
            min: values[0],
            max: values[last],
            rounds: values.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_shows_in_the_extremes_only() {
        let spread = Spread::of([1.0, 9.0, 1.1, 0.9, 1.05]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (1.05, 0.9, 9.0));
    }

    #[test]
    fn no_values_have_no_spread() {
        assert_eq!(Spread::of([]), None);
    }
}
