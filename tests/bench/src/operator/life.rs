//! Figures of one life of so many ApiKeys, and their rows.

use anyhow::Result;

use crate::report::Row;
use crate::rounds::Figure;

/// Name and unit of a figure.
pub type Name = (&'static str, &'static str);

/// Figures in the order in which they were measured.
pub struct Life {
    /// Version of Kubernetes.
    pub kubernetes: String,
    keys: usize,
    figures: Vec<(Name, Result<Vec<f64>, String>)>,
}

impl Life {
    /// Life of so many ApiKeys, without a figure.
    pub fn new(keys: usize, kubernetes: String) -> Self {
        Self {
            kubernetes,
            keys,
            figures: Vec::new(),
        }
    }

    /// Adds figures that were measured together.
    pub fn add<const N: usize>(&mut self, names: [Name; N], measured: Result<[Vec<f64>; N]>) {
        match measured {
            Ok(measured) => {
                let values = measured.into_iter().map(Ok);
                self.figures.extend(names.into_iter().zip(values));
            }
            Err(error) => {
                let failed = names.map(|name| (name, Err(format!("{error:#}"))));
                self.figures.extend(failed);
            }
        }
    }

    /// Rows with a bound: what the specification of the operator bounds.
    pub fn judged(&self) -> Vec<Row> {
        let start = "cold start, from the process' start to a complete directory";
        let answered = "the API server's answer to a deletion to dead at three gates";
        let (killed, stopped) = (
            "leader killed, until another acts",
            "leader asked to stop, until another acts",
        );
        let row =
            |name: &str, unit, figure, most| Row::new(self.named(name), unit, figure).at_most(most);
        let worst = |name: &str, most| {
            let figure = self.picked(name, |values| percentile(values, 100));
            row(&format!("{name}, the slowest"), "s", figure, most)
        };
        let late = |name: &str, most| {
            let figure = self.picked(name, |values| percentile(values, 99));
            row(&format!("{name}, p99"), "s", figure, most)
        };
        let writes = "restart, writes but for the Lease";
        let dead = self.figure("deleted, the last dead after the last request");
        let dead_row = "all deleted, the last dead after the last request";
        let memory = "peak memory, of all that follows";
        vec![
            worst(start, 5.0),
            row(memory, "MiB", self.peak_memory(), 150.0),
            late("create to usable at three gates", 2.0),
            late("delete to dead at three gates", 2.0),
            late(answered, 1.0),
            row(writes, "", self.figure(writes), 0.0),
            row(dead_row, "s", dead, 60.0),
            worst(killed, 20.0),
            worst(stopped, 3.0),
        ]
    }

    /// Rows of all figures.
    pub fn explained(&self) -> Vec<Row> {
        let row =
            |((name, unit), _): &(Name, _)| Row::new(self.named(name), unit, self.figure(name));
        self.figures.iter().map(row).collect()
    }

    /// Rows of what grows with the number of ApiKeys: ratios of medians.
    pub fn growth_from(&self, few: &Self) -> Vec<Row> {
        let row = |name: &str, many: Figure, few_keys: Figure| {
            let name = format!(
                "{name}, {} keys ÷ {}",
                grouped(self.keys),
                grouped(few.keys)
            );
            let medians = many.spread.zip(few_keys.spread);
            let ratio = Figure::new(medians.map(|(many, few)| many.median / few.median));
            let doubt = many.doubt.or(few_keys.doubt).or(ratio.doubt);
            Row::new(name, "×", Figure { doubt, ..ratio })
        };
        let names = [
            ("create to usable", "create to usable at three gates"),
            ("delete to dead", "delete to dead at three gates"),
            (REQUESTS, REQUESTS),
            (WRITES, WRITES),
            (CPU, CPU),
        ];
        let rows = names.map(|(name, figure)| row(name, self.figure(figure), few.figure(figure)));
        let memory = row("peak memory", self.peak_memory(), few.peak_memory());
        rows.into_iter().chain([memory]).collect()
    }

    /// Largest of all figures of peak memory.
    fn peak_memory(&self) -> Figure {
        let names = self.figures.iter().map(|((name, _), _)| *name);
        let peaks = names.filter(|name| name.ends_with("peak memory"));
        let peaks: Vec<Figure> = peaks.map(|name| self.figure(name)).collect();
        let largest = peaks.iter().filter_map(|peak| peak.spread);
        let largest = largest.map(|spread| spread.max).reduce(f64::max);
        let doubt = peaks.into_iter().find_map(|peak| peak.doubt);
        Figure {
            doubt,
            ..Figure::new(largest)
        }
    }

    /// Figure of one value.
    fn picked(&self, name: &str, pick: impl Fn(&[f64]) -> f64) -> Figure {
        match self.values(name) {
            Ok([]) => Figure::new([]),
            Ok(values) => Figure::new([pick(values)]),
            Err(_) => self.figure(name),
        }
    }

    fn figure(&self, name: &str) -> Figure {
        match self.values(name) {
            Ok(values) => Figure::new(values.iter().copied()),
            Err(doubt) => Figure {
                spread: None,
                doubt: Some(doubt.to_owned()),
            },
        }
    }

    fn values(&self, name: &str) -> Result<&[f64], &str> {
        let mut figures = self.figures.iter();
        let found = figures.find(|((found, _), _)| *found == name);
        let (_, values) = found.ok_or("there is no figure of that name")?;
        values.as_deref().map_err(String::as_str)
    }

    fn named(&self, name: &str) -> String {
        format!("{} keys: {name}", grouped(self.keys))
    }
}

/// Figures at rest that grow.
pub const REQUESTS: &str = "at rest, requests to the API server";
pub const WRITES: &str = "at rest, writes to etcd";
pub const CPU: &str = "at rest, CPU";

/// Number with its thousands apart.
fn grouped(number: usize) -> String {
    match (number / 1000, number % 1000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands} {rest:03}"),
    }
}

/// Smallest value that so many of a hundred do not exceed.
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

    #[test]
    fn the_peak_is_that_of_the_worst_phase_and_doubtful_without_one_of_them() {
        let mut life = Life::new(10_000, "v1".into());
        life.add(
            [("cold start, peak memory", "MiB")],
            Ok([vec![90.0, 120.0]]),
        );
        life.add([("deleted, peak memory", "MiB")], Ok([vec![100.0]]));
        assert_eq!(life.peak_memory(), Figure::new([120.0]));
        life.add([("rotated, peak memory", "MiB")], Err(anyhow!("no end")));
        let peak = life.peak_memory();
        assert_eq!(peak.spread.unwrap().median, 120.0);
        assert_eq!(peak.doubt.unwrap(), "no end");
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        let of_many = [99, 100].map(|part| percentile(&values, part));
        assert_eq!((of_many, percentile(&[3.0], 99)), ([198.0, 200.0], 3.0));
    }
}
