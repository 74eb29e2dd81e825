//! Results of suites that have ended; each test that failed runs once more, alone.
//!
//! A test that passes then is flaky: it is named and counted. What never runs again is in [`failures`] and
//! [`Outcomes::has_stalled`].

#[cfg(test)]
mod tests;

use std::process::ExitStatus;

use anyhow::{Context, Result, bail, ensure};

use super::{Outcome, Suite, Terms, TestTime, time};
use crate::faults::Outcomes;

/// Number of flaky tests that a run may have.
pub const MOST_FLAKY: usize = 3;

/// Status with which libtest ends when tests have failed.
const TESTS_FAILED: i32 = 101;

/// Results of a run's tests.
#[derive(Default)]
pub struct Results {
    /// Results of each test of a suite.
    pub outcomes: Outcomes,
    /// Tests that failed and passed when they ran again, those in the browser included.
    pub flaky: Vec<String>,
    pub times: Vec<TestTime>,
    /// Number of tests that ran, those in the browser included.
    pub count: usize,
}

impl Results {
    /// Adds suites that ran on these terms, and runs what failed again; `print` is given each suite that ran for that.
    /// The error names each test that failed twice or must not run again, and each suite whose end cannot be explained.
    pub fn add(
        &mut self,
        suites: Vec<Outcome>,
        terms: &Terms,
        print: impl Fn(&Outcome),
    ) -> Result<()> {
        let (mut problems, mut failed) = (Vec::new(), Vec::new());
        for outcome in suites {
            let name = &outcome.suite.name;
            let times = outcome.lines.iter().filter_map(|line| time(name, line));
            self.times.extend(times);
            let read = outcome.read();
            let (passed, not_passed) = read.result().unwrap_or_default();
            self.count += passed + not_passed;
            let all = outcome.suite.tests.len();
            match outcome
                .ended
                .and_then(|status| failures(status, &read, all))
            {
                Ok(tests) => {
                    for test in tests {
                        let described =
                            format!("{name} {}", read.failure(&test).unwrap_or_default());
                        if read.has_stalled(&test) {
                            failed.push((outcome.suite.clone(), test, described));
                        } else {
                            problems.push(format!("{described} (not run again)"));
                        }
                    }
                }
                Err(error) => problems.push(format!("{name}: {error:#}")),
            }
            self.outcomes.add(read);
        }
        let too_many = failed.len() + self.flaky.len() > MOST_FLAKY;
        for (suite, test, described) in failed {
            let name = format!("{} {test}", suite.name);
            if too_many || terms.interruption.has_come() {
                problems.push(described);
            } else if self.passes(suite, &test, terms, &print) {
                self.flaky.push(name);
            } else {
                problems.push(format!("{described} (twice)"));
            }
        }
        ensure!(problems.is_empty(), "{}", problems.join("; "));
        Ok(())
    }

    /// Runs a test that has failed once more, alone, and returns whether it passes.
    fn passes(
        &mut self,
        suite: Suite,
        test: &str,
        terms: &Terms,
        print: impl Fn(&Outcome),
    ) -> bool {
        let alone = Terms {
            threads: 1,
            ..terms.clone()
        };
        let once = Suite {
            tests: vec![test.to_owned()],
            ..suite
        };
        let outcome = once.run(&alone);
        print(&outcome);
        let read = outcome.read();
        let succeeded = outcome.ended.is_ok_and(|status| status.success());
        let passed = succeeded && read.result() == Some((1, 0));
        self.outcomes.add(read);
        if passed {
            self.outcomes.passed_again(test);
        }
        passed
    }
}

impl Outcome {
    fn read(&self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        self.lines.iter().for_each(|line| outcomes.read(line));
        outcomes
    }
}

/// Returns the tests of a suite that failed, if they explain how it ended, and so many ran.
fn failures(status: ExitStatus, outcomes: &Outcomes, all: usize) -> Result<Vec<String>> {
    let (passed, count) = outcomes
        .result()
        .with_context(|| format!("no result of its tests, {status}"))?;
    ensure!(
        passed + count == all,
        "{} of its {all} tests ran: none may be ignored",
        passed + count
    );
    let failed: Vec<String> = outcomes.failures().map(|(test, _)| test.clone()).collect();
    ensure!(
        failed.len() == count,
        "{count} tests failed, and {} are named: {}",
        failed.len(),
        failed.join(", ")
    );
    match (status.code(), count) {
        (Some(0), 0) | (Some(TESTS_FAILED), 1..) => {}
        _ => bail!("{status}, and {count} tests failed"),
    }
    Ok(failed)
}
