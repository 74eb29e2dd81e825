//! The rounds' values of one figure, of which the median counts.

/// One figure over all rounds.
#[derive(Clone, Copy, PartialEq, Debug)]
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
    /// Of at least one value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (rounds, last) = (values.len(), values.len() - 1);
        Self {
            median: values[last / 2],
            min: values[0],
            max: values[last],
            rounds,
        }
    }

    /// Of each round's own ratio: what slowed a whole round down is in both and cancels out.
    pub fn of_ratios(numerators: &[f64], denominators: &[f64]) -> Self {
        let pairs = numerators.iter().zip(denominators);
        Self::of(pairs.map(|(numerator, denominator)| numerator / denominator))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_round_does_not_move_the_median_of_ratios() {
        let spread = Spread::of_ratios(&[3.0, 30.0, 3.3], &[2.0, 20.0, 3.0]);
        assert_eq!((spread.median, spread.rounds), (1.5, 3));
        assert!((spread.min - 1.1).abs() < 1e-9);
    }

    #[test]
    fn an_outlier_shows_in_the_extremes_only() {
        let spread = Spread::of([1.0, 9.0, 1.1, 0.9, 1.05]);
        assert_eq!((spread.median, spread.min, spread.max), (1.05, 0.9, 9.0));
    }
}
