//! What is told of the rounds.

use super::contestant::Contestant::{self, *};
use super::limiter::Method;
use crate::report::{Row, Target};
use crate::rounds::Rounds;

/// What is ours for its cost must cost at most this much of what the library costs, or the library
/// takes its place.
const WORTH_IT: Target = Target::AtMost(0.95);

/// What is ours for what no library does must cost hardly more for it.
const FOR_NOTHING: Target = Target::AtMost(1.05);

/// All of them: first what is judged.
pub fn of(rounds: &Rounds) -> Vec<Row> {
    judged(rounds).chain(said(rounds)).collect()
}

/// What decides whether a part stays ours.
fn judged(rounds: &Rounds) -> impl Iterator<Item = Row> {
    let ratio = |name, ours: Contestant, library: Contestant, target| {
        let ratio = rounds.ratio(ours.name(), library.name());
        Row::judged(name, "×", ratio, target)
    };
    let memory = |name, library: Contestant| {
        let ratio = rounds.count_ratio(DirectoryOurs.name(), library.name());
        Row::judged(name, "×", ratio, WORTH_IT)
    };
    [
        ratio(
            "exchange with a service ÷ hyper-util's client",
            ExchangeOurs,
            ExchangeClient,
            WORTH_IT,
        ),
        ratio(
            "exchange with a service ÷ hyper's connection and a small pool",
            ExchangeOurs,
            ExchangeConnection,
            WORTH_IT,
        ),
        ratio(
            "accept loop ÷ plain loop before hyper",
            AcceptOurs,
            AcceptHyper,
            FOR_NOTHING,
        ),
        ratio(
            "accept loop before warp's routes ÷ warp's server",
            AcceptOursRoutes,
            AcceptWarp,
            FOR_NOTHING,
        ),
        ratio(
            "log line ÷ tracing-subscriber's JSON with tracing-appender",
            LogOurs,
            LogLibrary,
            WORTH_IT,
        ),
        ratio(
            "log sink ÷ tracing-appender",
            SinkOurs,
            SinkLibrary,
            WORTH_IT,
        ),
        memory(
            "directory, memory of a key ÷ hashbrown of records",
            DirectoryRecords,
        ),
        memory(
            "directory, memory of a key ÷ hashbrown of packed records",
            DirectoryPacked,
        ),
    ]
    .into_iter()
}

/// What explains them, and what is ours for another reason than its cost.
fn said(rounds: &Rounds) -> impl Iterator<Item = Row> {
    let ratio = |name, ours, library| Row::said(name, "×", rounds.ratio(ours, library));
    let ours = Method::Ours.name();
    let ratios = [
        ratio("limiter ÷ GCRA script", ours, Method::Gcra.name()),
        ratio("limiter ÷ INCR and EXPIRE", ours, Method::Fixed.name()),
        ratio(
            "directory, lookup ÷ hashbrown of records",
            DirectoryOurs.name(),
            DirectoryRecords.name(),
        ),
        ratio(
            "directory, lookup ÷ hashbrown of packed records",
            DirectoryOurs.name(),
            DirectoryPacked.name(),
        ),
    ];
    let cost = |unit, name| Row::said(name, unit, rounds.cost(name));
    let costs = Contestant::ALL.map(|contestant| cost(contestant.unit(), contestant.name()));
    let counted = Contestant::ALL.into_iter().filter_map(|contestant| {
        let (name, unit) = contestant.counts()?;
        Some(Row::said(name, unit, rounds.count(contestant.name())))
    });
    let limiters = Method::ALL.map(|method| cost("µs", method.name()));
    let counted: Vec<Row> = counted.collect();
    ratios
        .into_iter()
        .chain(costs)
        .chain(counted)
        .chain(limiters)
}
