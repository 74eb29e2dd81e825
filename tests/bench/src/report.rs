//! The result of a run: a table on the terminal, and a file that is kept beside the sources.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Serialize, Serializer};

use crate::machine::{self, Machine};
use crate::spread::Spread;

/// Everything that one run found out.
#[derive(Debug, Serialize)]
pub struct Report {
    date: String,
    machine: Machine,
    versions: BTreeMap<&'static str, String>,
    rows: Vec<Row>,
}

/// One figure. It keeps its name from run to run.
#[derive(Debug, Serialize)]
pub struct Row {
    name: &'static str,
    unit: &'static str,
    median: f64,
    min: f64,
    max: f64,
    rounds: usize,
    target: Option<Target>,
    holds: Option<bool>,
}

/// What a figure's median is held against (performance.md).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    /// At most this.
    AtMost(f64),
    /// Neither less nor more.
    Between(f64, f64),
}

impl Row {
    /// A figure without a target: said, not judged.
    pub fn said(name: &'static str, unit: &'static str, spread: Spread) -> Self {
        let Spread {
            median,
            min,
            max,
            rounds,
        } = spread;
        Self {
            name,
            unit,
            median,
            min,
            max,
            rounds,
            target: None,
            holds: None,
        }
    }

    /// A figure that is judged by its median.
    pub fn judged(name: &'static str, unit: &'static str, spread: Spread, target: Target) -> Self {
        Self {
            target: Some(target),
            holds: Some(target.admits(spread.median)),
            ..Self::said(name, unit, spread)
        }
    }
}

impl Target {
    fn admits(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::Between(least, most) => (least..=most).contains(&value),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::Between(least, most) => format!("{least} to {most}"),
        };
        formatter.pad(&text)
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Report {
    /// Of this machine, at this time.
    pub fn new(rows: Vec<Row>) -> Result<Self> {
        Ok(Self {
            date: machine::date(),
            machine: Machine::this()?,
            versions: machine::versions()?,
            rows,
        })
    }

    /// Writes `tests/bench/results/<part>.json`.
    pub fn record(&self, part: &str) -> Result<()> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        let file = folder.join(part).with_extension("json");
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cores, kernel } = &self.machine;
        write!(formatter, "{} · {cores} cores · Linux {kernel}", self.date)?;
        for (name, version) in &self.versions {
            write!(formatter, " · {name} {version}")?;
        }
        writeln!(formatter)?;
        let widest = self.rows.iter().map(|row| row.name.chars().count()).max();
        let widest = widest.unwrap_or_default();
        for row in &self.rows {
            let figures = format!("{} {}", number(row.median), row.unit);
            let extremes = format!("{} to {}", number(row.min), number(row.max));
            write!(
                formatter,
                "\n{:widest$}  {figures:>12}  {extremes:<18}",
                row.name
            )?;
            if let (Some(target), Some(holds)) = (row.target, row.holds) {
                let verdict = if holds { "holds" } else { "FALLS SHORT" };
                write!(formatter, "  {target:<12}  {verdict}")?;
            }
        }
        writeln!(formatter)
    }
}

/// Three significant digits, as far as there are any behind the point.
fn number(value: f64) -> String {
    let places = if value == 0.0 || value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(median: f64, target: Target) -> Row {
        Row::judged("this ÷ that", "", Spread::of([median]), target)
    }

    #[test]
    fn the_median_is_held_against_the_target() {
        assert_eq!(row(1.5, Target::AtMost(1.5)).holds, Some(true));
        assert_eq!(row(1.51, Target::AtMost(1.5)).holds, Some(false));
        assert_eq!(row(0.8, Target::Between(0.9, 1.1)).holds, Some(false));
        assert_eq!(row(1.1, Target::Between(0.9, 1.1)).holds, Some(true));
    }

    #[test]
    fn the_table_marks_what_falls_short() {
        let report = Report {
            date: "2026-01-01T00:00:00Z".into(),
            machine: Machine {
                cores: 2,
                kernel: "6.1".into(),
            },
            versions: BTreeMap::new(),
            rows: vec![
                row(1.6, Target::AtMost(1.5)),
                row(0.6, Target::AtMost(0.65)),
            ],
        };
        let table = report.to_string();
        let verdicts: Vec<bool> = table
            .lines()
            .filter(|line| line.starts_with("this"))
            .map(|line| line.contains("FALLS SHORT"))
            .collect();
        assert_eq!(verdicts, [true, false], "{table}");
    }

    #[test]
    fn a_row_is_written_with_these_fields() {
        let written = serde_json::to_value(row(0.5, Target::AtMost(0.65))).unwrap();
        let expected = serde_json::json!({
            "name": "this ÷ that", "unit": "", "median": 0.5, "min": 0.5, "max": 0.5, "rounds": 1,
            "target": "≤ 0.65", "holds": true,
        });
        assert_eq!(written, expected);
    }
}
