//! Variants take turns, round after round, so that all of them meet the same changes of the machine.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use serde::Serialize;

use crate::load::{Load, Slice};

/// Process under one load.
#[derive(Debug)]
pub struct Variant {
    /// Name in rows.
    pub name: &'static str,
    /// Requests to the process.
    pub load: Load,
    /// Process whose CPU time is counted, with its children's.
    pub process: u32,
}

/// Averages of one variant's turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// CPU time of a request in microseconds, where nothing else is said.
    pub cost: f64,
    /// Second figure of the turn; 0 without one.
    pub counted: f64,
}

/// Turns of all variants.
#[derive(Debug, Default)]
pub struct Rounds {
    /// Turns of each variant, in the order of the rounds.
    turns: HashMap<&'static str, Vec<Turn>>,
    /// Reasons why variants' figures do not count.
    doubts: BTreeMap<&'static str, String>,
}

/// Values of one figure over all rounds, of which the median counts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Middle value; the lower of two.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of values.
    pub rounds: usize,
}

/// Figure, or the reason why it does not count.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// `None`: nothing was measured.
    pub spread: Option<Spread>,
    /// Reason in words for the reader of the table.
    pub doubt: Option<String>,
}

impl Figure {
    /// Figure with these values.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let spread = values.len().checked_sub(1).map(|last| Spread {
            median: values[last / 2],
            min: values[0],
            max: values[last],
            rounds: values.len(),
        });
        let doubt = spread.is_none().then(|| "nothing was measured".to_owned());
        Self { spread, doubt }
    }

    /// Figure that could not be measured to its end.
    pub fn failed(error: &anyhow::Error) -> Self {
        Self {
            spread: None,
            doubt: Some(format!("{error:#}")),
        }
    }
}

/// Sends the load of each variant in turn, `rounds` times. `counter` is read around each turn: something else
/// that the requests add to.
pub async fn run(
    variants: &[Variant],
    rounds: usize,
    slice: Slice,
    counter: impl AsyncFn() -> Result<u64>,
) -> Rounds {
    let names: Vec<_> = variants.iter().map(|variant| variant.name).collect();
    take_turns(&names, rounds, async |index| {
        let Variant { load, process, .. } = &variants[index];
        let before = counter().await?;
        let sample = load.send(*process, slice).await?;
        let counted = counter().await? - before;
        Ok(Turn {
            cost: sample.cost(),
            counted: counted as f64 / sample.answers as f64,
        })
    })
    .await
}

/// Gives the variant of each name its `turn`, by its index, `rounds` times after one that is not counted.
///
/// A variant that fails takes no further turns and its figures do not count; the others go on.
pub async fn take_turns(
    names: &[&'static str],
    rounds: usize,
    mut turn: impl AsyncFnMut(usize) -> Result<Turn>,
) -> Rounds {
    let mut measured = Rounds::default();
    for round in 0..=rounds {
        eprintln!("round {round} of {rounds}");
        for (index, name) in names.iter().enumerate() {
            if measured.doubts.contains_key(name) {
                continue;
            }
            match turn(index).await {
                Ok(turn) if round > 0 => measured.turns.entry(name).or_default().push(turn),
                Ok(_) => {}
                Err(error) => measured.doubt(name, format!("round {round}: {error:#}")),
            }
        }
    }
    measured
}

impl Rounds {
    /// Gives the reason why a variant's figures do not count.
    pub fn doubt(&mut self, variant: &'static str, reason: String) {
        eprintln!("{variant}: {reason}");
        self.doubts.entry(variant).or_insert(reason);
    }

    /// Cost of a request, in the unit of the turns.
    pub fn cost(&self, variant: &str) -> Figure {
        self.figure([variant], |[turn]| turn.cost)
    }

    /// Second figure of a request.
    pub fn count(&self, variant: &str) -> Figure {
        self.figure([variant], |[turn]| turn.counted)
    }

    /// Cost of one variant divided by another's in the same round: a slow round cancels out.
    pub fn ratio(&self, variant: &str, reference: &str) -> Figure {
        self.figure([variant, reference], |[one, other]| one.cost / other.cost)
    }

    /// Ratio of one pair of variants divided by that of another pair, in the same round.
    pub fn ratio_of_ratios(&self, [a, b]: [&str; 2], [c, d]: [&str; 2]) -> Figure {
        self.figure([a, b, c, d], |[a, b, c, d]| {
            (a.cost / b.cost) / (c.cost / d.cost)
        })
    }

    /// Figure with a value for each round in which all these variants had a turn.
    fn figure<const N: usize>(
        &self,
        variants: [&str; N],
        value: impl Fn([Turn; N]) -> f64,
    ) -> Figure {
        let turns = variants.map(|variant| self.turns.get(variant).map_or(&[][..], Vec::as_slice));
        let rounds = turns.iter().map(|turns| turns.len()).min().unwrap_or(0);
        let measured = Figure::new((0..rounds).map(|round| value(turns.map(|turns| turns[round]))));
        let doubts = variants.iter().filter_map(|variant| {
            let reason = self.doubts.get(variant)?;
            Some(format!("{variant}: {reason}"))
        });
        let doubts: Vec<String> = doubts.collect();
        if doubts.is_empty() {
            return measured;
        }
        Figure {
            doubt: Some(doubts.join("; ")),
            ..measured
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(one: &[f64], other: &[f64]) -> Rounds {
        let turn = |cost: &f64| Turn {
            cost: *cost,
            counted: 1.0,
        };
        let turns = [("one", one), ("other", other)];
        let turns = turns.map(|(name, costs)| (name, costs.iter().map(turn).collect()));
        Rounds {
            turns: HashMap::from(turns),
            doubts: BTreeMap::new(),
        }
    }

    #[test]
    fn a_slow_round_does_not_move_the_median_of_ratios() {
        let rounds = rounds(&[3.0, 30.0, 3.3], &[2.0, 20.0, 3.0]);
        let spread = rounds.ratio("one", "other").spread.unwrap();
        assert_eq!((spread.median, spread.max, spread.rounds), (1.5, 1.5, 3));
        assert!((spread.min - 1.1).abs() < 1e-9);
    }

    #[test]
    fn a_doubt_is_in_each_figure_of_its_variant_and_in_no_other() {
        let mut rounds = rounds(&[3.0, 3.0], &[2.0, 2.0]);
        rounds.doubt("other", "it answered 503".to_owned());
        let ratio = rounds.ratio("one", "other");
        assert_eq!(ratio.spread.unwrap().median, 1.5);
        assert_eq!(ratio.doubt.unwrap(), "other: it answered 503");
        assert_eq!(rounds.cost("one").doubt, None);
        assert!(rounds.cost("third").doubt.is_some());
    }
}
