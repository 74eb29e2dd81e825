//! Test programs, run one after the other, and at the end each test that failed once more, alone.
//!
//! A test that passes then is flaky: it is named and counted. What is never run again is in [`failures`] and
//! [`Outcomes::has_finding`].

#[cfg(test)]
mod tests;

use std::process::ExitStatus;

use anyhow::{Context, Result, bail, ensure};

use crate::faults::Outcomes;
use crate::searched::{Shown, run_searched};
use crate::test_programs::TestProgram;

/// How many flaky tests a run may have.
pub const MOST_FLAKY: usize = 3;

/// With what libtest ends when tests have failed.
const TESTS_FAILED: i32 = 101;

/// What became of the tests of a run.
#[derive(Default)]
pub struct Results {
    /// Of each test of a test program.
    pub outcomes: Outcomes,
    /// The tests that failed and passed when they ran again, those in the browser included.
    pub flaky: Vec<String>,
}

/// Some test programs, and how they are run.
pub struct Suite<'a> {
    pub programs: &'a [TestProgram],
    /// Of the first run, such as the part of a path that tests must have.
    pub arguments: &'a [&'a str],
    pub variables: &'a [(&'a str, String)],
    pub shown: Shown,
    /// Whether the run was interrupted: nothing more is started then.
    pub is_interrupted: &'a dyn Fn() -> bool,
}

impl Suite<'_> {
    /// Runs all of them, whatever fails. The error names each test that failed twice or must not run again, and each
    /// program whose end cannot be explained.
    pub fn run(&self, results: &mut Results) -> Result<()> {
        let (mut problems, mut failed) = (Vec::new(), Vec::new());
        for program in self.programs {
            if (self.is_interrupted)() {
                break;
            }
            let name = program.name();
            let (outcomes, ended) = self.start(program, self.arguments);
            match ended.and_then(|status| failures(status, &outcomes)) {
                Ok(tests) => {
                    for test in tests {
                        if outcomes.has_finding(&test) {
                            problems.push(format!("{name} {test} (not run again)"));
                        } else {
                            failed.push((program, test));
                        }
                    }
                }
                Err(error) => problems.push(format!("{name}: {error:#}")),
            }
            results.outcomes.add(outcomes);
        }
        let too_many = failed.len() + results.flaky.len() > MOST_FLAKY;
        for (program, test) in failed {
            let name = format!("{} {test}", program.name());
            if too_many || (self.is_interrupted)() {
                problems.push(name);
            } else if self.passes(program, &test, results) {
                results.flaky.push(name);
            } else {
                problems.push(format!("{name} (twice)"));
            }
        }
        if (self.is_interrupted)() {
            problems.push("interrupted".to_owned());
        }
        ensure!(problems.is_empty(), "{}", problems.join("; "));
        Ok(())
    }

    /// Whether a test that has failed passes alone.
    fn passes(&self, program: &TestProgram, test: &str, results: &mut Results) -> bool {
        let (outcomes, ended) = self.start(program, &["--exact", test, "--test-threads=1"]);
        let passed =
            ended.is_ok_and(|status| status.success()) && outcomes.result() == Some((1, 0));
        results.outcomes.add(outcomes);
        if passed {
            results.outcomes.passed_again(test);
        }
        passed
    }

    /// Runs one program to its end; an error says, too, that its output holds an API key.
    fn start(&self, program: &TestProgram, arguments: &[&str]) -> (Outcomes, Result<ExitStatus>) {
        eprintln!("\n── {} {}", program.name(), arguments.join(" "));
        let mut command = program.command();
        command
            .args(arguments)
            // What passing tests print are the figures that they measured.
            .arg("--show-output")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        let mut outcomes = Outcomes::default();
        let ended = run_searched(&mut command, self.shown, |line| outcomes.read(line));
        (outcomes, ended)
    }
}

/// The tests of a program that failed, if they explain how it ended.
fn failures(status: ExitStatus, outcomes: &Outcomes) -> Result<Vec<String>> {
    let (_, count) = outcomes
        .result()
        .with_context(|| format!("no result of its tests, {status}"))?;
    let failed: Vec<String> = outcomes.failures().map(|(test, _)| test.clone()).collect();
    ensure!(
        failed.len() == count,
        "{count} tests failed, and {} are named: {}",
        failed.len(),
        failed.join(", ")
    );
    match (status.code(), count) {
        (Some(0), 0) => {}
        (Some(TESTS_FAILED), 1..) => {}
        _ => bail!("{status}, and {count} tests failed"),
    }
    Ok(failed)
}
