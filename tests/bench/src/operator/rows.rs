//! What was measured, as rows.

use anyhow::Result;

use super::cold_start::ColdStart;
use super::deletion::Deletion;
use super::failover::Failover;
use super::issuance::Issuance;
use super::rest::Rest;
use super::restart::Restart;
use super::rotation::Rotation;
use super::samples::Samples;
use crate::report::{Row, Target};
use crate::rounds::Figure;
use crate::spread::Spread;

/// What one life of so many ApiKeys showed.
pub struct Measured {
    /// How many there were.
    pub keys: usize,
    /// The version of Kubernetes.
    pub kubernetes: String,
    pub issuance: Result<Issuance>,
    pub samples: Result<Samples>,
    pub rest: Result<Rest>,
    pub restart: Result<Restart>,
    pub cold_start: Result<ColdStart>,
    pub failover: Result<Failover>,
    pub rotation: Result<Rotation>,
    pub deletion: Result<Deletion>,
}

/// The figures that have a target, each with what it is called, its unit and its bound.
pub fn judged(measured: &Measured) -> Vec<Row> {
    let judge = |name: &str, unit, figure: Figure, most| {
        Row::judged(named(measured, name), unit, figure, Target::AtMost(most))
    };
    let at_most = |name: &str, figure, seconds| judge(name, "s", figure, seconds);
    let samples = &measured.samples;
    let late = |values: fn(&Samples) -> &Vec<f64>| {
        figure(samples, |samples| vec![percentile(values(samples), 99)])
    };
    let failover = &measured.failover;
    vec![
        at_most(
            "cold start, from the process' start to a complete directory, the slowest",
            worst(figure(&measured.cold_start, |starts| {
                starts.complete.clone()
            })),
            5.0,
        ),
        judge(
            "peak memory, of all that follows",
            "MiB",
            peak_memory(measured),
            150.0,
        ),
        at_most(
            "create to usable at three gates, p99",
            late(|samples| &samples.usable),
            2.0,
        ),
        at_most(
            "delete to dead at three gates, p99",
            late(|samples| &samples.dead),
            2.0,
        ),
        at_most(
            "the API server's answer to a deletion to dead at three gates, p99",
            late(|samples| &samples.dead_after_answer),
            1.0,
        ),
        judge(
            "restart, writes but for the Lease",
            "",
            figure(&measured.restart, |restart| vec![restart.writes]),
            0.0,
        ),
        at_most(
            "all deleted, the last dead after the last request",
            figure(&measured.deletion, |deletion| vec![deletion.dead]),
            60.0,
        ),
        at_most(
            "leader killed, until another acts, the slowest",
            worst(figure(failover, |failover| failover.killed.clone())),
            20.0,
        ),
        at_most(
            "leader asked to stop, until another acts, the slowest",
            worst(figure(failover, |failover| failover.stopped.clone())),
            3.0,
        ),
    ]
}

/// The figures that explain them.
pub fn of(measured: &Measured) -> Vec<Row> {
    let row = |name: &str, unit, figure: Figure| Row::said(named(measured, name), unit, figure);
    let issuance =
        |value: fn(&Issuance) -> f64| figure(&measured.issuance, |issuance| vec![value(issuance)]);
    let samples = |values: fn(&Samples) -> Vec<f64>| figure(&measured.samples, values);
    let rest = |values: fn(&Rest) -> Vec<f64>| figure(&measured.rest, values);
    let rotation =
        |value: fn(&Rotation) -> f64| figure(&measured.rotation, |rotation| vec![value(rotation)]);
    let deletion =
        |value: fn(&Deletion) -> f64| figure(&measured.deletion, |deletion| vec![value(deletion)]);
    vec![
        row(
            "created, all requests answered",
            "s",
            issuance(|it| it.requested),
        ),
        row(
            "first issuance, the last key readable",
            "s",
            issuance(|it| it.issued),
        ),
        row(
            "first issuance, peak memory",
            "MiB",
            issuance(|it| it.memory),
        ),
        row(
            "create to usable at three gates",
            "s",
            samples(|it| it.usable.clone()),
        ),
        row(
            "delete to dead at three gates",
            "s",
            samples(|it| it.dead.clone()),
        ),
        row(
            "the API server's answer to a deletion to dead at three gates",
            "s",
            samples(|it| it.dead_after_answer.clone()),
        ),
        row(
            "at rest, requests to the API server",
            "a minute",
            rest(|it| it.requests.clone()),
        ),
        row(
            "at rest, writes to etcd",
            "a minute",
            rest(|it| it.writes.clone()),
        ),
        row("at rest, CPU", "cores", rest(|it| it.cpu.clone())),
        row("at rest, memory", "MiB", rest(|it| it.memory.clone())),
        row(
            "restart, writes but for the Lease",
            "",
            figure(&measured.restart, |restart| vec![restart.writes]),
        ),
        row(
            "restart, peak memory",
            "MiB",
            figure(&measured.restart, |restart| vec![restart.memory]),
        ),
        row(
            "cold start, from the process' start to a complete directory",
            "s",
            figure(&measured.cold_start, |starts| starts.complete.clone()),
        ),
        row(
            "cold start, peak memory",
            "MiB",
            figure(&measured.cold_start, |starts| starts.memory.clone()),
        ),
        row(
            "rotated, all requests answered",
            "s",
            rotation(|it| it.requested),
        ),
        row(
            "rotated, the last new key readable",
            "s",
            rotation(|it| it.rotated),
        ),
        row("rotated, peak memory", "MiB", rotation(|it| it.memory)),
        row(
            "deleted, all requests answered",
            "s",
            deletion(|it| it.requested),
        ),
        row(
            "deleted, the last dead after the last request",
            "s",
            deletion(|it| it.dead),
        ),
        row(
            "deleted, no ApiKey left after the last request",
            "s",
            deletion(|it| it.gone),
        ),
        row("deleted, peak memory", "MiB", deletion(|it| it.memory)),
        row(
            "leader killed, until another acts",
            "s",
            figure(&measured.failover, |it| it.killed.clone()),
        ),
        row(
            "leader asked to stop, until another acts",
            "s",
            figure(&measured.failover, |it| it.stopped.clone()),
        ),
    ]
}

/// What grows with the number of ApiKeys.
pub fn growth(few: &Measured, many: &Measured) -> Vec<Row> {
    let row = |name: &str, value: fn(&Measured) -> Figure| {
        let name = format!(
            "{name}, {} keys ÷ {}",
            grouped(many.keys),
            grouped(few.keys)
        );
        Row::said(name, "×", ratio(value(many), value(few)))
    };
    let usable = |measured: &Measured| figure(&measured.samples, |it| it.usable.clone());
    let dead = |measured: &Measured| figure(&measured.samples, |it| it.dead.clone());
    vec![
        row("create to usable", usable),
        row("delete to dead", dead),
        row("at rest, requests to the API server", |measured| {
            figure(&measured.rest, |it| it.requests.clone())
        }),
        row("at rest, writes to etcd", |measured| {
            figure(&measured.rest, |it| it.writes.clone())
        }),
        row("at rest, CPU", |measured| {
            figure(&measured.rest, |it| it.cpu.clone())
        }),
        row("peak memory", peak_memory),
    ]
}

/// The largest value alone.
fn worst(figure: Figure) -> Figure {
    let largest = figure.spread.map(|spread| spread.max);
    Figure {
        spread: Spread::of(largest),
        ..figure
    }
}

/// Of everything whose memory is measured.
fn peak_memory(measured: &Measured) -> Figure {
    let phases = [
        figure(&measured.issuance, |it| vec![it.memory]),
        figure(&measured.rest, |it| vec![it.peak]),
        figure(&measured.restart, |it| vec![it.memory]),
        figure(&measured.cold_start, |it| it.memory.clone()),
        figure(&measured.rotation, |it| vec![it.memory]),
        figure(&measured.deletion, |it| vec![it.memory]),
    ];
    let doubts = phases.iter().filter_map(|figure| figure.doubt.clone());
    let doubts: Vec<String> = doubts.collect();
    let peaks = phases.iter().filter_map(|figure| figure.spread);
    let peak = peaks.map(|spread| spread.max).reduce(f64::max);
    Figure {
        spread: Spread::of(peak),
        doubt: (!doubts.is_empty()).then(|| doubts.join("; ")),
    }
}

fn named(measured: &Measured, name: &str) -> String {
    format!("{} keys: {name}", grouped(measured.keys))
}

/// Thousands apart.
fn grouped(number: usize) -> String {
    match (number / 1000, number % 1000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands} {rest:03}"),
    }
}

fn figure<T>(measured: &Result<T>, values: impl FnOnce(&T) -> Vec<f64>) -> Figure {
    match measured {
        Ok(measured) => Figure::from(Spread::of(values(measured))),
        Err(error) => Figure::failed(error),
    }
}

/// Of the medians.
fn ratio(one: Figure, other: Figure) -> Figure {
    let ratio = one.spread.zip(other.spread);
    let ratio = ratio.map(|(one, other)| one.median / other.median);
    Figure {
        doubt: one.doubt.or(other.doubt),
        ..Figure::from(Spread::of(ratio))
    }
}

/// The smallest value that so many of a hundred do not exceed.
fn percentile(values: &[f64], part: usize) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let place = (values.len() * part).div_ceil(100);
    values[place.saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn measured(memory: [f64; 2]) -> Measured {
        let [cold_start, deletion] = memory;
        Measured {
            keys: 10_000,
            kubernetes: "v1".into(),
            issuance: Err(anyhow!("it did not end")),
            samples: Ok(Samples::default()),
            rest: Ok(Rest::default()),
            restart: Ok(Restart {
                writes: 0.0,
                memory: 1.0,
            }),
            cold_start: Ok(ColdStart {
                complete: vec![1.0],
                memory: vec![cold_start],
            }),
            failover: Ok(Failover::default()),
            rotation: Ok(Rotation {
                requested: 1.0,
                rotated: 1.0,
                memory: 1.0,
            }),
            deletion: Ok(Deletion {
                requested: 1.0,
                dead: 1.0,
                gone: 1.0,
                memory: deletion,
            }),
        }
    }

    #[test]
    fn the_peak_is_that_of_the_worst_phase_and_doubtful_without_one_of_them() {
        let peak = peak_memory(&measured([90.0, 120.0]));
        assert_eq!(peak.spread.unwrap().median, 120.0);
        assert_eq!(peak.doubt.unwrap(), "it did not end");
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(
            (percentile(&values, 99), percentile(&[3.0], 99)),
            (198.0, 3.0)
        );
    }

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!([grouped(100), grouped(10_000)], ["100", "10 000"]);
    }
}
