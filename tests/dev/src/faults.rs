//! The report of faults: each fault by its number, and the results of its tests in this run, or of the
//! measurement that was recorded last.

mod list;
mod outcomes;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use crate::process::run;
use crate::project::project;
use list::{FAULTS, LACKING, MEASURED, numbers, tests};
pub use outcomes::Outcomes;

/// Path of the report, from the checkout's root.
pub const REPORT: &str = "tests/e2e/results/faults.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    number: usize,
    fault: &'static str,
    outcome: &'static str,
    /// Time of the slowest of its tests that measures it.
    converge_seconds: Option<f64>,
    note: String,
    /// Date of the run, in UTC.
    date: String,
}

/// Number of random sequences of changes and faults that a run with all faults tries.
const SEQUENCES: &str = "200";

/// Returns the variables with which tests of faults take their longer form, and the model explores its wider bounds.
pub fn variables() -> Result<Vec<(&'static str, String)>> {
    // Other sequences every day, the same ones all day. They print their seed.
    let day = run(Command::new("date").args(["--utc", "+%Y%j"]))?;
    let seed = std::env::var("WATER_FAULT_SEED").unwrap_or(day.trim().into());
    Ok(vec![
        ("WATER_FAULTS", "all".to_owned()),
        ("WATER_FAULT_SEQUENCES", SEQUENCES.to_owned()),
        ("WATER_FAULT_SEED", seed),
        ("WATER_MODEL", "full".to_owned()),
    ])
}

/// Writes the report, and returns how many faults were held, and of how many.
pub fn write(mut outcomes: Outcomes) -> Result<(usize, usize)> {
    let recorded = project().join(MEASURED.1);
    let recorded = fs::read(&recorded).with_context(|| format!("read {}", recorded.display()))?;
    let mut tests = tests()?;
    tests.push(measured(&mut outcomes, &serde_json::from_slice(&recorded)?));
    let date = run(Command::new("date").args(["--utc", "+%FT%TZ"]))?;
    let entry = |number| entry(number, &tests, &outcomes, date.trim());
    let entries: Vec<Entry> = (1..=FAULTS.len()).map(entry).collect();
    let file = project().join(REPORT);
    let text = serde_json::to_string_pretty(&entries)? + "\n";
    fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    let held = entries.iter().filter(|entry| entry.outcome == "held");
    Ok((held.count(), entries.len()))
}

/// Notes a recorded measurement as a test of this name, which fails when a row misses its target.
fn measured(outcomes: &mut Outcomes, recorded: &Value) -> String {
    let (number, file) = MEASURED;
    let name = format!("fault_{number}_by_{file}_of_{}", recorded["date"]);
    let mut rows = recorded["rows"].as_array().into_iter().flatten();
    let result = if rows.any(|row| row["holds"] == false) {
        "FAILED"
    } else {
        "ok"
    };
    outcomes.read(&format!("test {name} ... {result}"));
    name
}

fn entry(number: usize, tests: &[String], outcomes: &Outcomes, date: &str) -> Entry {
    let (mut failed, mut not_run, mut held) = (Vec::new(), Vec::new(), Vec::new());
    let mut converge_seconds = None;
    for test in tests
        .iter()
        .filter(|test| numbers(test).any(|it| it == number))
    {
        let Some(outcome) = outcomes.get(test) else {
            not_run.push(test.clone());
            continue;
        };
        let both = [converge_seconds, outcome.converged];
        converge_seconds = both.into_iter().flatten().reduce(f64::max);
        match &outcome.requests {
            _ if outcome.failed => failed.push(test.clone()),
            Some(requests) => held.push(format!("{test} ({requests} requests)")),
            None => held.push(test.clone()),
        }
    }
    let lacking = LACKING.iter().find(|(fault, _)| *fault == number);
    let (outcome, note) = if !failed.is_empty() {
        ("fell short", format!("failed: {}", failed.join(", ")))
    } else if !not_run.is_empty() {
        ("not run", format!("did not run: {}", not_run.join(", ")))
    } else if let Some((_, lacking)) = lacking {
        ("not run", (*lacking).to_owned())
    } else {
        ("held", held.join(", "))
    };
    Entry {
        number,
        fault: FAULTS[number - 1],
        outcome,
        converge_seconds,
        note,
        date: date.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_is_held_when_nothing_failed_is_missing_or_lacking() {
        let mut outcomes = Outcomes::default();
        let lines = "test a::fault_01_02_a ... ok\ntest fault_02_b ... FAILED\ntest fault_02_b ... ok\n\
            test fault_31_d ... ok\nconverged after 9 s\nsuccesses:\n\
            ---- a::fault_01_02_a stdout ----\nconverged after 0.5 s\nconverged after 0.25 s\n\
            Create has 31 requests; killed 30 times";
        lines.lines().for_each(|line| outcomes.read(line));
        let tests = [
            "a::fault_01_02_a",
            "fault_02_b",
            "fault_03_c",
            "fault_31_d",
            "fault_05_e",
        ];
        let mut tests = tests.map(str::to_owned).to_vec();
        let rows = |holds| json!({ "date": 1, "rows": [{ "holds": holds }, { "holds": null }] });
        tests.push(measured(&mut outcomes, &rows(true)));
        let found = |number| entry(number, &tests, &outcomes, "today");
        let all = [1, 2, 3, 5, 31, 37].map(|number| found(number).outcome);
        assert_eq!(
            all,
            [
                "held",
                "fell short",
                "not run",
                "not run",
                "not run",
                "held"
            ]
        );
        assert_eq!(found(1).note, "a::fault_01_02_a (31 requests)");
        assert_eq!(found(1).converge_seconds, Some(0.5));
        assert_eq!(found(2).note, "failed: fault_02_b");
        assert_eq!(found(3).note, "did not run: fault_03_c");
        assert_eq!(found(31).note, LACKING[0].1);
        measured(&mut outcomes, &rows(false));
        assert_eq!(entry(37, &tests, &outcomes, "today").outcome, "fell short");
    }
}
