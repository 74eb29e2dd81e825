//! The result of a run: a table on the terminal, and a file that is kept beside the sources.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Serialize, Serializer};

use crate::machine::{self, Machine};
use crate::rounds::Figure;
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
    name: String,
    unit: &'static str,
    #[serde(flatten)]
    spread: Option<Spread>,
    target: Option<Target>,
    /// `None`: it has no target, or does not count.
    holds: Option<bool>,
    /// Why it does not count.
    doubt: Option<String>,
}

/// What a figure's median is held against.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

impl Row {
    /// A figure without a target: said, not judged.
    pub fn said(name: impl Into<String>, unit: &'static str, figure: impl Into<Figure>) -> Self {
        let Figure { spread, doubt } = figure.into();
        Self {
            name: name.into(),
            unit,
            spread,
            target: None,
            holds: None,
            doubt,
        }
    }

    /// A figure that is judged by its median.
    pub fn judged(
        name: impl Into<String>,
        unit: &'static str,
        figure: impl Into<Figure>,
        target: Target,
    ) -> Self {
        let row = Self::said(name, unit, figure);
        let counts = row.doubt.is_none();
        let median = row.spread.filter(|_| counts).map(|spread| spread.median);
        Self {
            target: Some(target),
            holds: median.map(|median| target.admits(median)),
            ..row
        }
    }

    /// Why the row does not count, if it does not.
    pub fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }
}

impl Target {
    fn admits(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::AtLeast(least) => format!("≥ {least}"),
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

    /// Tells these versions too.
    pub fn with_versions(mut self, versions: BTreeMap<&'static str, String>) -> Self {
        self.versions.extend(versions);
        self
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
            let (figures, extremes) = row.spread.map_or_else(Default::default, |spread| {
                let median = format!("{} {}", number(spread.median), row.unit);
                let extremes = format!("{} to {}", number(spread.min), number(spread.max));
                (median, extremes)
            });
            write!(
                formatter,
                "\n{:widest$}  {figures:>12}  {extremes:<18}",
                row.name
            )?;
            if let Some(target) = row.target {
                write!(formatter, "  {target:<12}")?;
            }
            match (row.holds, &row.doubt) {
                (_, Some(doubt)) => write!(formatter, "  DOES NOT COUNT: {doubt}")?,
                (Some(true), None) => write!(formatter, "  holds")?,
                (Some(false), None) => write!(formatter, "  FALLS SHORT")?,
                (None, None) => {}
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

    fn report() -> Report {
        Report {
            date: "2026-01-01T00:00:00Z".into(),
            machine: Machine {
                cores: 2,
                kernel: "6.1".into(),
            },
            versions: BTreeMap::new(),
            rows: Vec::new(),
        }
    }

    #[test]
    fn the_median_is_held_against_the_target() {
        assert_eq!(row(1.5, Target::AtMost(1.5)).holds, Some(true));
        assert_eq!(row(1.51, Target::AtMost(1.5)).holds, Some(false));
        assert_eq!(row(0.85, Target::AtLeast(0.85)).holds, Some(true));
        assert_eq!(row(0.84, Target::AtLeast(0.85)).holds, Some(false));
    }

    #[test]
    fn the_table_marks_what_falls_short() {
        let report = Report {
            rows: vec![
                row(1.6, Target::AtMost(1.5)),
                row(0.6, Target::AtMost(0.65)),
            ],
            ..report()
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
            "target": "≤ 0.65", "holds": true, "doubt": null,
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn a_row_that_does_not_count_says_why_and_is_not_judged() {
        let figure = Figure {
            doubt: Some("Redis was away".into()),
            ..Figure::from(Spread::of([0.5]))
        };
        let row = Row::judged("this ÷ that", "", figure, Target::AtMost(0.65));
        assert_eq!(row.holds, None);
        let report = Report {
            rows: vec![row],
            ..report()
        };
        let table = report.to_string();
        assert!(
            table.ends_with("≤ 0.65        DOES NOT COUNT: Redis was away\n"),
            "{table}"
        );
    }
}
