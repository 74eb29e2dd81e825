//! The report of faults: which fault the product was put to, by which tests, and what came of it.
//! An entry says what tests that ran and measurements that were recorded have shown, and nothing else.

mod outcomes;
mod table;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::process::run;
use crate::project::project;
pub use outcomes::{Ended, Outcomes};
use table::{FAULTS, Fault};

/// What `cargo dev bench operator` recorded last.
const MEASURED: &str = "tests/bench/results/operator.json";

/// Where the report is kept, from the checkout's root.
pub const REPORT: &str = "tests/e2e/results/faults.json";

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    number: u8,
    fault: &'static str,
    outcome: &'static str,
    /// Of the slowest of its tests that measures it.
    converge_seconds: Option<f64>,
    note: String,
    /// Of the run, in UTC.
    date: String,
}

/// Writes the report, and answers how many faults were held, and of how many.
pub fn write(mut outcomes: Outcomes) -> Result<(usize, usize)> {
    let measured = project().join(MEASURED);
    let measured = fs::read(&measured).with_context(|| format!("read {}", measured.display()))?;
    outcomes.measured(&serde_json::from_slice(&measured)?);
    let date = run(Command::new("date").args(["--utc", "+%FT%TZ"]))?;
    let entry = |fault| entry(fault, &outcomes, date.trim());
    let entries: Vec<Entry> = FAULTS.iter().map(entry).collect();
    let file = project().join(REPORT);
    let folder = file.parent().context("the report is in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let text = serde_json::to_string_pretty(&entries)? + "\n";
    fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    let held = entries.iter().filter(|entry| entry.outcome == "held");
    Ok((held.count(), entries.len()))
}

fn entry(fault: &Fault, outcomes: &Outcomes, date: &str) -> Entry {
    let ended = |wanted: Ended| -> Vec<&str> {
        let tests = fault.tests.iter().copied();
        tests
            .filter(|test| outcomes.ended(test) == wanted)
            .collect()
    };
    let (failed, missing) = (ended(Ended::Failed), ended(Ended::NotRun));
    let (outcome, note) = if !failed.is_empty() {
        ("fell short", format!("failed: {}", failed.join(", ")))
    } else if !missing.is_empty() {
        ("not run", format!("did not run: {}", missing.join(", ")))
    } else if let Some(lacking) = fault.lacking {
        ("not run", lacking.to_owned())
    } else {
        let tests = fault.tests.iter();
        let tests: Vec<String> = tests.map(|test| outcomes.described(test)).collect();
        ("held", tests.join(", "))
    };
    let seconds = fault
        .tests
        .iter()
        .filter_map(|test| outcomes.converged(test));
    Entry {
        number: fault.number,
        fault: fault.name,
        outcome,
        converge_seconds: seconds.reduce(f64::max),
        note,
        date: date.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FAULT: Fault = Fault {
        number: 7,
        name: "a fault",
        tests: &["a::first", "b::second"],
        lacking: None,
    };

    fn told(fault: &Fault, lines: &[&str]) -> (&'static str, String, Option<f64>) {
        let mut outcomes = Outcomes::default();
        lines.iter().for_each(|line| outcomes.read(line));
        let entry = entry(fault, &outcomes, "today");
        (entry.outcome, entry.note, entry.converge_seconds)
    }

    #[test]
    fn a_fault_is_held_when_all_of_its_tests_have_passed() {
        let lines = ["test a::first ... ok", "test b::second ... ok"];
        let held = ("held", "a::first, b::second".to_owned(), None);
        assert_eq!(told(&FAULT, &lines), held);
    }

    #[test]
    fn a_measurement_is_told_with_its_date() {
        let fault = Fault {
            tests: &["rows: a row"],
            ..FAULT
        };
        let row = json!({ "name": "rows: a row", "holds": true });
        let mut outcomes = Outcomes::default();
        outcomes.measured(&json!({ "date": "yesterday", "rows": [row] }));
        let entry = entry(&fault, &outcomes, "today");
        assert_eq!(entry.note, "rows: a row (measured yesterday)");
    }

    #[test]
    fn a_test_that_failed_or_did_not_run_is_named() {
        let ok = "test a::first ... ok";
        let (outcome, note, _) = told(&FAULT, &[ok, "test b::second ... FAILED"]);
        assert_eq!((outcome, &*note), ("fell short", "failed: b::second"));
        let (outcome, note, _) = told(&FAULT, &[ok]);
        assert_eq!((outcome, &*note), ("not run", "did not run: b::second"));
    }

    #[test]
    fn what_no_test_shows_is_said_though_the_others_passed() {
        let fault = Fault {
            lacking: Some("nothing fills the disk"),
            ..FAULT
        };
        let lines = ["test a::first ... ok", "test b::second ... ok"];
        let (outcome, note, _) = told(&fault, &lines);
        assert_eq!((outcome, &*note), ("not run", "nothing fills the disk"));
    }

    #[test]
    fn the_slowest_convergence_counts() {
        let lines = [
            "test a::first ... ok",
            "test b::second ... ok",
            "---- a::first stdout ----",
            "converged after 0.250 s",
            "---- b::second stdout ----",
            "converged after 1.500 s",
        ];
        assert_eq!(told(&FAULT, &lines).2, Some(1.5));
    }
}
