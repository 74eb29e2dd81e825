//! Tests that `cargo test` leaves out since they take minutes: the model's wider bounds, tests, kills,
//! restarts, and random sequences.

use std::process::Command;

use anyhow::Result;

use super::Run;
use crate::confidential::cargo_searched;
use crate::process::run as run_command;

/// Number of random sequences of changes and faults that a run with all faults tries.
const SEQUENCES: &str = "200";

/// Runs the tests one after the other: their times are recorded.
pub fn run(run: &mut Run) -> Result<()> {
    let outcomes = &mut run.results.outcomes;
    // Other sequences every day, the same ones all day. They print their seed.
    let day = run_command(Command::new("date").args(["--utc", "+%Y%j"]))?;
    let seed = std::env::var("WATER_FAULT_SEED").unwrap_or(day.trim().into());
    let variables = [
        ("WATER_FAULTS", "all".to_owned()),
        ("WATER_FAULT_SEQUENCES", SEQUENCES.to_owned()),
        ("WATER_FAULT_SEED", seed),
    ];
    let model = ["test", "--package", "water-model", "--", "--show-output"];
    let model = cargo_searched(&model, &[("WATER_MODEL", "full".to_owned())], |line| {
        outcomes.read(line);
    });
    let mut tests = |test: &str, filter: &str| {
        let package = ["test", "--package", "water-operator"];
        let asked = [&package[..], &["--test", test, "--", filter]].concat();
        // A shorter run of them, among the component tests, does not replace this one.
        let listing = [&asked[..], &["--list"]].concat();
        cargo_searched(&listing, &[], |line| {
            if let Some(test) = line.strip_suffix(": test") {
                outcomes.forget(test);
            }
        })?;
        let arguments = [&asked[..], &["--show-output"]].concat();
        cargo_searched(&arguments, &variables, |line| outcomes.read(line))
    };
    let long = tests("long", "");
    let whole = tests("it", "faults::");
    model.and(long).and(whole)
}
