//! The summary of a run: a line for each part.

use std::fmt;
use std::time::Duration;

use anyhow::Result;

use crate::timeline::Timeline;

/// The results of a run's parts.
pub struct Summary {
    lines: Vec<String>,
    failed: bool,
    timeline: Timeline,
}

impl Summary {
    /// Makes an empty summary.
    pub fn new(timeline: &Timeline) -> Self {
        Self {
            lines: Vec::new(),
            failed: false,
            timeline: timeline.clone(),
        }
    }

    /// Runs `part` as the part called `name` and adds its line.
    pub fn run(&mut self, name: &str, part: impl FnOnce() -> Result<()>) {
        let begin = self.timeline.elapsed();
        let result = self.timeline.record(name, part);
        self.ended(name, self.timeline.elapsed() - begin, &result);
    }

    /// Adds the line of a part that has ended.
    pub fn ended(&mut self, name: &str, taken: Duration, result: &Result<()>) {
        let seconds = taken.as_secs_f64();
        match result {
            Ok(()) => self.lines.push(format!("✓ {name} ({seconds:.0} s)")),
            Err(error) => {
                eprintln!("{name}: {error:#}");
                let first = error.to_string();
                let first = first.lines().next().unwrap_or_default();
                self.fail(name, &format!("failed after {seconds:.0} s: {first}"));
            }
        }
    }

    /// Adds a line that is no result.
    pub fn note(&mut self, line: &str) {
        self.lines.push(format!("  {line}"));
    }

    /// Names the flaky tests, each at the beginning of a line, where they are found; more than `most` fail the run.
    pub fn name_flaky(&mut self, flaky: &[String], most: usize) {
        self.lines
            .extend(flaky.iter().map(|test| format!("flaky: {test}")));
        if flaky.len() > most {
            let reason = format!("{}, and a run may have {most}", flaky.len());
            self.fail("flaky tests", &reason);
        }
    }

    /// Adds a failure.
    pub fn fail(&mut self, name: &str, reason: &str) {
        self.failed = true;
        self.lines.push(format!("✗ {name}: {reason}"));
    }

    /// Adds the lines of another summary.
    pub fn extend(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.failed |= other.failed;
    }

    /// Whether a part failed.
    pub fn has_failed(&self) -> bool {
        self.failed
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}
