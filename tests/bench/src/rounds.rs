//! Variants take turns, round after round, so that what changes on the machine meanwhile meets all
//! of them alike.

use std::collections::HashMap;

use anyhow::{Context, Result};

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
    /// CPU time of one request by variant and round, in microseconds.
    costs: HashMap<&'static str, Vec<f64>>,
    /// What the counter counted for one request, by variant and round.
    counts: HashMap<&'static str, Vec<f64>>,
}

/// Sends each variant's load in turn, `rounds` times after one that is not counted. `counter` is
/// read around each turn: something else that the variants' requests add to.
pub async fn run(
    variants: &[Variant],
    rounds: usize,
    slice: Slice,
    counter: impl AsyncFn() -> Result<u64>,
) -> Result<Rounds> {
    let mut measured = Rounds::default();
    for round in 0..=rounds {
        eprintln!("round {round} of {rounds}");
        for variant in variants {
            let before = counter().await?;
            let sample = variant.load.send(variant.process, slice).await;
            let sample = sample.with_context(|| variant.name)?;
            let counted = (counter().await? - before) as f64 / sample.answers as f64;
            if round > 0 {
                let costs = measured.costs.entry(variant.name).or_default();
                costs.push(sample.cost());
                measured
                    .counts
                    .entry(variant.name)
                    .or_default()
                    .push(counted);
            }
        }
    }
    Ok(measured)
}

impl Rounds {
    /// CPU time of a request, in microseconds.
    pub fn cost(&self, variant: &str) -> Spread {
        Spread::of(self.costs[variant].iter().copied())
    }

    /// CPU time of a request, one variant's divided by another's.
    pub fn ratio(&self, variant: &str, reference: &str) -> Spread {
        Spread::of_ratios(&self.costs[variant], &self.costs[reference])
    }

    /// What the counter counted for a request.
    pub fn count(&self, variant: &str) -> Spread {
        Spread::of(self.counts[variant].iter().copied())
    }
}
