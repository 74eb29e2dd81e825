//! Result of a run: a table on the terminal, and a file that is kept with the sources.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::{Context, Result, ensure};
use chrono::{SecondsFormat, Utc};
use serde::Serialize;

use crate::rounds::{Figure, Spread};

/// Rows of one run, with its date, machine and versions.
#[derive(Debug, Serialize)]
pub struct Report {
    date: String,
    machine: Machine,
    versions: BTreeMap<&'static str, String>,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Machine {
    /// Cores that all programs share: the measured ones, those behind them, and the load.
    cores: usize,
    /// Release of the kernel.
    kernel: String,
}

/// Figure of a run. Its name stays from run to run.
#[derive(Debug, Serialize)]
pub struct Row {
    name: String,
    unit: &'static str,
    #[serde(flatten)]
    spread: Option<Spread>,
    target: Option<String>,
    /// `None`: the row has no target, or does not count.
    holds: Option<bool>,
    /// Reason why it does not count.
    doubt: Option<String>,
}

impl Row {
    /// Row without a target.
    pub fn new(name: impl Into<String>, unit: &'static str, figure: Figure) -> Self {
        Self {
            name: name.into(),
            unit,
            spread: figure.spread,
            target: None,
            holds: None,
            doubt: figure.doubt,
        }
    }

    /// Row whose median has this upper bound.
    pub fn at_most(self, most: f64) -> Self {
        self.judged(format!("≤ {most}"), |median| median <= most)
    }

    /// Row whose median has this lower bound.
    pub fn at_least(self, least: f64) -> Self {
        self.judged(format!("≥ {least}"), |median| median >= least)
    }

    fn judged(mut self, target: String, holds: impl Fn(f64) -> bool) -> Self {
        let spread = self.spread.filter(|_| self.doubt.is_none());
        self.holds = spread.map(|spread| holds(spread.median));
        self.target = Some(target);
        self
    }
}

impl Report {
    /// Report of these rows, measured on this machine with nginx, Redis and `versions`.
    pub fn new(rows: Vec<Row>, versions: &[(&'static str, String)]) -> Result<Self> {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let nginx = first_line(Command::new("nginx").arg("-v"))?;
        let redis = first_line(Command::new("redis-server").arg("--version"))?;
        let mut git = Command::new("git");
        git.args(["describe", "--always", "--dirty"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        // An unpacked archive has no commits.
        let water = first_line(&mut git).unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned());
        let known = [
            ("nginx", word_after("nginx/", &nginx)),
            ("redis", word_after("v=", &redis)),
            ("water", water),
        ];
        Ok(Self {
            date: date(),
            machine: Machine {
                cores: available_parallelism()?.get(),
                kernel: kernel.trim().to_owned(),
            },
            versions: known.into_iter().chain(versions.iter().cloned()).collect(),
            rows,
        })
    }

    /// Fails if a row does not count.
    pub fn counts(&self) -> Result<()> {
        let doubts: Vec<_> = self.rows.iter().flat_map(|row| &row.doubt).collect();
        ensure!(doubts.is_empty(), "{doubts:#?}");
        Ok(())
    }

    /// Writes `tests/bench/results/<part>.json`.
    pub fn record(&self, part: &str) -> Result<()> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        let file = folder.join(part).with_extension("json");
        fs::write(&file, self.text()?).with_context(|| format!("write {}", file.display()))
    }

    /// JSON with one line for each row, so that a difference shows the rows that have changed.
    fn text(&self) -> Result<String> {
        let rows = self.rows.iter().map(serde_json::to_string);
        let rows = rows.collect::<Result<Vec<_>, _>>()?.join(",\n    ");
        let date = serde_json::to_string(&self.date)?;
        let machine = serde_json::to_string(&self.machine)?;
        let versions = serde_json::to_string(&self.versions)?;
        Ok(format!(
            "{{\n  \"date\": {date},\n  \"machine\": {machine},\n  \"versions\": {versions},\n  \
             \"rows\": [\n    {rows}\n  ]\n}}\n"
        ))
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
            let (figure, extremes) = row.spread.map_or_else(Default::default, |spread| {
                let median = format!("{} {}", number(spread.median), row.unit);
                let extremes = format!("{} to {}", number(spread.min), number(spread.max));
                (median, extremes)
            });
            let target = row.target.as_deref().unwrap_or_default();
            let verdict = match (row.holds, &row.doubt) {
                (_, Some(doubt)) => format!("DOES NOT COUNT: {doubt}"),
                (Some(true), None) => "holds".to_owned(),
                (Some(false), None) => "FALLS SHORT".to_owned(),
                (None, None) => String::new(),
            };
            let line = format!(
                "{:widest$}  {figure:>12}  {extremes:<18}  {target:<12}  {verdict}",
                row.name
            );
            write!(formatter, "\n{}", line.trim_end())?;
        }
        writeln!(formatter)
    }
}

/// Day and time, UTC.
#[expect(
    clippy::disallowed_methods,
    reason = "names when a result was measured, no decision depends on it"
)]
pub fn date() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Rest of the word that `mark` begins; all of the text without one.
fn word_after(mark: &str, text: &str) -> String {
    let rest = text.split_once(mark).map_or(text, |(_, rest)| rest);
    let word = rest.split_ascii_whitespace().next();
    word.unwrap_or(text).to_owned()
}

fn first_line(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("{name} cannot be started: is it installed?"))?;
    ensure!(output.status.success(), "{name}: {}", output.status);
    // nginx writes its version to standard error.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next();
    Ok(line
        .with_context(|| format!("{name} has no version"))?
        .to_owned())
}

/// Three significant digits, if there are any behind the point.
fn number(value: f64) -> String {
    let places = match value.abs() {
        0.0 | 100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_row_is_judged_by_its_median_and_not_at_all_in_doubt() {
        let row = || Row::new("this ÷ that", "×", Figure::new([0.9, 1.5, 7.0]));
        assert_eq!(row().at_most(1.5).holds, Some(true));
        assert_eq!(row().at_most(1.49).holds, Some(false));
        assert_eq!(row().at_least(1.5).holds, Some(true));
        assert_eq!(row().at_least(1.51).holds, Some(false));
        let failed = Figure::failed(&anyhow!("Redis was away"));
        assert_eq!(Row::new("this", "×", failed).at_most(1.5).holds, None);
    }

    #[test]
    fn the_file_holds_these_fields_and_the_table_each_verdict() {
        let failed = Figure::failed(&anyhow!("Redis was away"));
        let rows = vec![
            Row::new("this ÷ that", "×", Figure::new([0.5])).at_most(0.65),
            Row::new("this ÷ that", "×", Figure::new([0.7])).at_most(0.65),
            Row::new("this ÷ that", "×", failed).at_most(0.65),
        ];
        let report = Report {
            date: "2026-01-01T00:00:00Z".into(),
            machine: Machine {
                cores: 2,
                kernel: "6.1".into(),
            },
            versions: BTreeMap::from([("nginx", "1.22".into())]),
            rows,
        };
        let written: serde_json::Value = serde_json::from_str(&report.text().unwrap()).unwrap();
        let row = serde_json::json!({
            "name": "this ÷ that", "unit": "×", "median": 0.5, "min": 0.5, "max": 0.5, "rounds": 1,
            "target": "≤ 0.65", "holds": true, "doubt": null,
        });
        assert_eq!(written["rows"][0], row);
        assert_eq!(written["machine"]["cores"], 2);
        let table = report.to_string();
        let lines: Vec<&str> = table.lines().skip(2).collect();
        let verdicts = ["holds", "FALLS SHORT", "DOES NOT COUNT: Redis was away"];
        for (line, verdict) in lines.iter().zip(verdicts) {
            assert!(line.ends_with(verdict), "{line}");
        }
        assert_eq!(lines.len(), verdicts.len());
    }
}
