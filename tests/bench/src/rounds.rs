//! Variants take turns, round after round, so that what changes on the machine meanwhile meets all
//! of them alike.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;

use crate::load::{Expected, Load, Slice};
use crate::spread::Spread;

/// One process under one load.
#[derive(Debug)]
pub struct Variant {
    /// How it is called in rows.
    pub name: &'static str,
    /// What is sent to it.
    pub load: Load,
    /// The process whose CPU time is counted, with its children.
    pub process: u32,
}

impl Variant {
    /// The same with another number of connections.
    pub fn connections(mut self, connections: usize) -> Self {
        self.load.connections = connections;
        self
    }

    /// The same where another status is right; its problem's length varies.
    pub fn answered(mut self, status: u16) -> Self {
        self.load.expected = Expected {
            status,
            length: None,
        };
        self
    }
}

/// What all rounds measured.
#[derive(Debug, Default)]
pub struct Rounds {
    /// Each variant's turns, in the order of the rounds.
    turns: HashMap<&'static str, Vec<Turn>>,
    /// Why a variant's figures do not count.
    doubts: BTreeMap<&'static str, String>,
}

/// What one request cost on average, in one variant's turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// CPU time, in microseconds where nothing else is said.
    pub cost: f64,
    /// What the counter counted.
    pub counted: f64,
}

/// One figure, and why it does not count if it does not.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// `None`: nothing was measured.
    pub spread: Option<Spread>,
    /// In words for the reader of the table.
    pub doubt: Option<String>,
}

impl Figure {
    /// Of something that could not be measured to its end.
    pub fn failed(error: &anyhow::Error) -> Self {
        Self {
            spread: None,
            doubt: Some(format!("{error:#}")),
        }
    }
}

impl From<Option<Spread>> for Figure {
    fn from(spread: Option<Spread>) -> Self {
        Self {
            spread,
            doubt: spread.is_none().then(|| "nothing was measured".to_owned()),
        }
    }
}

/// Sends each variant's load in turn ([`take_turns`]). `counter` is read around each turn: something
/// else that the variants' requests add to.
pub async fn run(
    variants: &[Variant],
    rounds: usize,
    slice: Slice,
    counter: impl AsyncFn() -> Result<u64>,
) -> Rounds {
    let names: Vec<_> = variants.iter().map(|variant| variant.name).collect();
    take_turns(&names, rounds, async |index| {
        turn(&variants[index], slice, &counter).await
    })
    .await
}

/// Gives each name's variant its `turn`, by its index, `rounds` times after one that is not counted.
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

async fn turn(
    variant: &Variant,
    slice: Slice,
    counter: &impl AsyncFn() -> Result<u64>,
) -> Result<Turn> {
    let before = counter().await?;
    let sample = variant.load.send(variant.process, slice).await?;
    let counted = counter().await? - before;
    Ok(Turn {
        cost: sample.cost(),
        counted: counted as f64 / sample.answers as f64,
    })
}

impl Rounds {
    /// Says why what was measured of a variant does not count.
    pub fn doubt(&mut self, variant: &'static str, reason: String) {
        eprintln!("{variant}: {reason}");
        self.doubts.entry(variant).or_insert(reason);
    }

    /// CPU time of a request, in the unit of its turns.
    pub fn cost(&self, variant: &str) -> Figure {
        self.figure([variant], |[turn]| turn.cost)
    }

    /// CPU time of a request, one variant's divided by another's in the same round: what slowed a
    /// whole round down is in both and cancels out.
    pub fn ratio(&self, variant: &str, reference: &str) -> Figure {
        self.figure([variant, reference], |[one, other]| one.cost / other.cost)
    }

    /// What the counter counted for a request.
    pub fn count(&self, variant: &str) -> Figure {
        self.figure([variant], |[turn]| turn.counted)
    }

    /// What the counter counted for a request of one variant, divided by another's in the same round.
    pub fn count_ratio(&self, variant: &str, reference: &str) -> Figure {
        self.figure([variant, reference], |[one, other]| {
            one.counted / other.counted
        })
    }

    /// The ratio of one pair of variants divided by that of another pair, in the same round.
    pub fn ratio_of_ratios(&self, pair: [&str; 2], reference: [&str; 2]) -> Figure {
        let ([a, b], [c, d]) = (pair, reference);
        self.figure([a, b, c, d], |[a, b, c, d]| {
            (a.cost / b.cost) / (c.cost / d.cost)
        })
    }

    /// One value a round of all these variants' turns in it.
    fn figure<const N: usize>(
        &self,
        variants: [&str; N],
        value: impl Fn([Turn; N]) -> f64,
    ) -> Figure {
        let turns = variants.map(|variant| self.turns.get(variant).map_or(&[][..], Vec::as_slice));
        let rounds = turns.iter().map(|turns| turns.len()).min().unwrap_or(0);
        let values = (0..rounds).map(|round| value(turns.map(|turns| turns[round])));
        let doubts = variants.iter().filter_map(|variant| {
            let reason = self.doubts.get(variant)?;
            Some(format!("{variant}: {reason}"))
        });
        let doubts: Vec<String> = doubts.collect();
        let measured = Figure::from(Spread::of(values));
        Figure {
            doubt: (!doubts.is_empty())
                .then(|| doubts.join("; "))
                .or(measured.doubt),
            ..measured
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(one: &[f64], other: &[f64]) -> Rounds {
        let turns = |costs: &[f64]| {
            let turn = |cost: &f64| Turn {
                cost: *cost,
                counted: 1.0,
            };
            costs.iter().map(turn).collect()
        };
        Rounds {
            turns: HashMap::from([("one", turns(one)), ("other", turns(other))]),
            doubts: BTreeMap::new(),
        }
    }

    #[test]
    fn a_slow_round_does_not_move_the_median_of_ratios() {
        let rounds = rounds(&[3.0, 30.0, 3.3], &[2.0, 20.0, 3.0]);
        let spread = rounds.ratio("one", "other").spread.unwrap();
        assert_eq!((spread.median, spread.rounds), (1.5, 3));
        assert!((spread.min - 1.1).abs() < 1e-9);
    }

    #[test]
    fn a_variant_in_doubt_makes_each_figure_doubtful_that_it_is_in_and_no_other() {
        let mut rounds = rounds(&[3.0, 3.0], &[2.0, 2.0]);
        rounds.doubt("other", "it answered 503".to_owned());
        let ratio = rounds.ratio("one", "other");
        assert_eq!(ratio.spread.unwrap().median, 1.5);
        assert_eq!(ratio.doubt.unwrap(), "other: it answered 503");
        assert_eq!(rounds.cost("one").doubt, None);
    }

    #[test]
    fn what_never_ran_has_no_figure() {
        let figure = rounds(&[1.0], &[]).ratio("one", "other");
        assert_eq!(figure.spread, None);
        assert_eq!(figure.doubt.unwrap(), "nothing was measured");
    }
}
