//! The record of the last run of all long tests, which is committed.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::process::run;
use crate::project::project;

/// Path of the record, from the checkout's root.
pub const RECORD: &str = "tests/e2e/results/long.json";

/// A run in which all long tests passed.
#[derive(Serialize)]
struct Record {
    /// Hash of the commit that was tested.
    commit: String,
    /// Date of the run, in UTC.
    date: String,
    /// Time of the whole run.
    seconds: u64,
    /// Number of tests that ran, the short ones included.
    tests: usize,
    /// Tests that failed once, and passed when they ran again.
    flaky: Vec<String>,
}

/// Commit that is tested; none if the sources are another's.
pub struct Tested(Option<String>);

impl Tested {
    /// Reads the commit of the checkout. Only results of tests may differ from it.
    pub fn now() -> Result<Self> {
        let changed = git(&["status", "--porcelain", "--", ".", ":!tests/*/results"])?;
        let commit = git(&["rev-parse", "HEAD"])?;
        Ok(Self(changed.is_empty().then_some(commit)))
    }

    /// Returns why a run of this is not recorded, if it is not.
    pub fn refusal(&self) -> Option<&'static str> {
        let refusal =
            "long tests: not recorded, since the checkout has changes that are not committed";
        self.0.is_none().then_some(refusal)
    }

    /// Writes the record of a run that has passed. What was not committed is not recorded.
    pub fn record(self, taken: Duration, tests: usize, flaky: &[String]) -> Result<()> {
        let Some(commit) = self.0 else { return Ok(()) };
        let record = Record {
            commit,
            date: run(Command::new("date").args(["--utc", "+%FT%TZ"]))?
                .trim()
                .to_owned(),
            seconds: taken.as_secs(),
            tests,
            flaky: flaky.to_vec(),
        };
        let file = project().join(RECORD);
        let text = serde_json::to_string_pretty(&record)? + "\n";
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))
    }
}

fn git(arguments: &[&str]) -> Result<String> {
    let printed = run(Command::new("git").args(arguments).current_dir(project()))?;
    Ok(printed.trim().to_owned())
}
