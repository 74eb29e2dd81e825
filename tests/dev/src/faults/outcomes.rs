//! Results of tests, read from libtest's output with `--show-output`.

use std::collections::{BTreeMap, VecDeque};

use crate::stalls::is_stall;

/// Last lines of a failed test that are shown again: its panic is among them.
const FAILURE_LINES: usize = 60;

/// Result of one test.
#[derive(Default)]
pub struct Outcome {
    pub failed: bool,
    /// Seconds until the state was as it should be again, at most.
    pub converged: Option<f64>,
    /// Number of requests at which the operator was killed.
    pub requests: Option<String>,
    /// Last lines of a failed test.
    printed: VecDeque<String>,
    /// Whether it printed what must never be, however rare it is.
    has_finding: bool,
    /// Whether its error has begun, and whether that says that it came too late, or that nobody answered.
    is_error: bool,
    has_stalled: bool,
}

/// Results of the tests that ran, by their paths, such as `rotation::a_period_is_counted`.
#[derive(Default)]
pub struct Outcomes {
    tests: BTreeMap<String, Outcome>,
    /// The test whose output follows.
    shown: Option<String>,
    /// Numbers of tests that passed and failed, as the program reports them at its end.
    result: Option<(usize, usize)>,
}

impl Outcomes {
    /// Reads the next line.
    pub fn read(&mut self, line: &str) {
        let (printed, line) = (line.trim_end(), line.trim());
        if let Some(test) = between(line, "---- ", " stdout ----") {
            self.shown = Some(test.to_owned());
        } else if ["successes:", "failures:"].contains(&line) {
            self.shown = None;
        } else if let Some((test, failed)) = ended(line) {
            // Of two tests of one path the one that failed counts.
            self.tests.entry(test.to_owned()).or_default().failed |= failed;
        } else if let Some(result) = result(line) {
            self.result = Some(result);
        } else if let Some(outcome) = self.shown.as_ref().and_then(|it| self.tests.get_mut(it)) {
            outcome.read(printed);
        }
    }

    /// Returns a failed test's name with its error; none of one that did not fail.
    pub fn failure(&self, test: &str) -> Option<String> {
        let outcome = self.tests.get(test).filter(|outcome| outcome.failed)?;
        Some(match outcome.error() {
            Some(error) => format!("{test} ({error})"),
            None => test.to_owned(),
        })
    }

    /// Returns the tests that failed, those that have passed since included, each with the last lines that it printed.
    pub fn failures(&self) -> impl Iterator<Item = (&String, &VecDeque<String>)> {
        let failed = self
            .tests
            .iter()
            .filter(|(_, outcome)| outcome.failed || !outcome.printed.is_empty());
        failed.map(|(test, outcome)| (test, &outcome.printed))
    }

    /// Returns the numbers of tests that passed and failed, as the program reports them at its end: none if it did not
    /// come so far.
    pub fn result(&self) -> Option<(usize, usize)> {
        self.result
    }

    /// Whether a standstill of the machine may be why the test failed. Else it has found something: a wrong value, an
    /// invariant that is violated, or a part of an API key.
    pub fn has_stalled(&self, test: &str) -> bool {
        self.tests
            .get(test)
            .is_some_and(|outcome| outcome.has_stalled && !outcome.has_finding)
    }

    /// Adds the results of another program.
    pub fn add(&mut self, other: Self) {
        for (test, outcome) in other.tests {
            self.tests.entry(test).or_default().add(outcome);
        }
    }

    /// Notes that a test which failed has passed since: it counts as passed, and what it printed when it failed is kept.
    pub fn passed_again(&mut self, test: &str) {
        if let Some(outcome) = self.tests.get_mut(test) {
            outcome.failed = false;
        }
    }

    /// Returns the result of the test of that path.
    pub fn get(&self, test: &str) -> Option<&Outcome> {
        self.tests.get(test)
    }
}

impl Outcome {
    /// Returns the error of a test, or the first line of its panic.
    fn error(&self) -> Option<&str> {
        let mut lines = self.printed.iter();
        lines
            .find_map(|line| line.strip_prefix("Error: "))
            .or_else(|| {
                let mut lines = self.printed.iter();
                lines.find(|line| line.contains(" panicked at "))?;
                Some(lines.next()?.trim())
            })
    }

    /// Adds the result of another run of it, or of another test of its path: the one that failed counts.
    fn add(&mut self, other: Self) {
        self.failed |= other.failed;
        self.has_finding |= other.has_finding;
        self.has_stalled |= other.has_stalled;
        let both = [self.converged, other.converged];
        self.converged = both.into_iter().flatten().reduce(f64::max);
        self.requests = other.requests.or_else(|| self.requests.take());
        self.printed.extend(other.printed);
    }

    fn read(&mut self, printed: &str) {
        let line = printed.trim();
        self.has_finding |= is_finding(line);
        self.is_error |= line.starts_with("Error: ");
        // Lines of a program's log are about the program.
        self.has_stalled |= self.is_error && !line.starts_with('{') && is_stall(line);
        self.is_error |= line.contains(" panicked at ");
        if self.failed && !is_backtrace(line) {
            self.printed.push_back(printed.to_owned());
            if self.printed.len() > FAILURE_LINES {
                self.printed.pop_front();
            }
        }
        if let Some(seconds) = between(line, "converged after ", " s") {
            let seconds = seconds.parse().ok();
            self.converged = self.converged.into_iter().chain(seconds).reduce(f64::max);
        } else if let Some((_, rest)) = line.split_once(" has ")
            && let Some((requests, _)) = rest.split_once(" requests;")
        {
            self.requests = Some(requests.to_owned());
        }
    }
}

/// Returns a test's path, and whether it failed.
fn ended(line: &str) -> Option<(&str, bool)> {
    let (test, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    match result.split([' ', ',']).next()? {
        "ok" => Some((test, false)),
        "FAILED" => Some((test, true)),
        _ => None,
    }
}

/// Returns the counts in the line with which libtest ends, such as
/// `test result: FAILED. 5 passed; 1 failed; 0 ignored; …`.
fn result(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |name| {
        counts
            .split("; ")
            .find_map(|count| count.strip_suffix(name)?.trim().parse().ok())
    };
    Some((count("passed")?, count("failed")?))
}

/// Whether a line holds what must never be, however rare it is: a violation of one of `tests/kit`'s invariants, such as
/// `invariant 9: …`, or the beginning of an API key, of which a test found the text somewhere.
fn is_finding(line: &str) -> bool {
    let violation = line.split("invariant ").skip(1).any(|rest| {
        rest.split_once(':')
            .is_some_and(|(number, _)| number.parse::<u8>().is_ok())
    });
    violation || line.contains("wdk_")
}

/// Whether the line is a frame of a backtrace, or the place of its source.
fn is_backtrace(line: &str) -> bool {
    let number = line.split(": ").next().unwrap_or_default();
    number.parse::<u32>().is_ok() || line.starts_with("at ")
}

fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    line.strip_prefix(before)?.strip_suffix(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_shows_its_last_lines() {
        let mut read = Outcomes::default();
        let long = ["a line"; FAILURE_LINES];
        let before = [
            "test a ... ok",
            "test b ... FAILED",
            "successes:",
            "---- a stdout ----",
        ];
        let of_b = ["of a", "failures:", "---- b stdout ----"];
        let after = [
            "  its panic",
            "   0: main",
            "      at main.rs:1",
            "failures:",
            "    b",
        ];
        let lines = [&before[..], &of_b, &long, &after].concat();
        lines.iter().for_each(|line| read.read(line));
        let printed = [&long[1..], &["  its panic"]].concat();
        let printed = printed.into_iter().map(str::to_owned).collect();
        assert_eq!(
            read.failures().collect::<Vec<_>>(),
            [(&"b".to_owned(), &printed)]
        );
    }

    #[test]
    fn a_failure_is_named_with_its_error() {
        let mut read = Outcomes::default();
        let lines = [
            "test panics ... FAILED",
            "test returns ... FAILED",
            "test is_silent ... FAILED",
            "test passes ... ok",
            "failures:",
            "---- panics stdout ----",
            "thread 'panics' (7) panicked at a.rs:1:2:",
            "two are three",
            "note: run with more",
            "---- returns stdout ----",
            "a figure",
            "Error: waited 9s for it",
            "Caused by: nothing",
        ];
        lines.iter().for_each(|line| read.read(line));
        let failure = |test: &str| read.failure(test);
        assert_eq!(failure("panics").unwrap(), "panics (two are three)");
        assert_eq!(failure("returns").unwrap(), "returns (waited 9s for it)");
        assert_eq!(failure("is_silent").unwrap(), "is_silent");
        assert_eq!(failure("passes"), None);
    }

    #[test]
    fn the_programs_own_count_is_read() {
        let mut read = Outcomes::default();
        assert_eq!(read.result(), None);
        read.read("test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.1s");
        assert_eq!(read.result(), Some((5, 1)));
    }

    #[test]
    fn a_standstill_and_a_finding_belong_to_the_test_that_printed_them() {
        let mut read = Outcomes::default();
        let lines = [
            "test a ... FAILED",
            "test b ... FAILED",
            "test c - should panic ... FAILED",
            "test d ... FAILED",
            "---- a stdout ----",
            "Error: waited 60s for the end: invariant 9: a revoked key is accepted",
            "---- b stdout ----",
            "an invariant of b: none",
            "Error: waited 60s for an event",
            "---- c stdout ----",
            "thread 'c' panicked at tests/timeout.rs:1:2:",
            "waited 60s for an end",
            "  left: Some(\"wdk_aaaaaaaaaaaa\")",
            "---- d stdout ----",
            "connection refused",
            "thread 'd' panicked at tests/timeout.rs:1:2:",
            "{\"message\":\"connection refused\"}",
        ];
        lines.iter().for_each(|line| read.read(line));
        let stalled = ["a", "b", "c", "d"].map(|test| read.has_stalled(test));
        assert_eq!(stalled, [false, true, false, false]);
    }

    #[test]
    fn a_test_that_passed_when_it_ran_again_counts_as_passed_and_keeps_its_output() {
        let (mut all, mut other) = (Outcomes::default(), Outcomes::default());
        let lines = ["test b ... FAILED", "---- b stdout ----", "its panic"];
        lines.iter().for_each(|line| other.read(line));
        all.add(other);
        assert!(all.get("b").unwrap().failed);
        all.passed_again("b");
        assert!(!all.get("b").unwrap().failed);
        let printed = VecDeque::from(["its panic".to_owned()]);
        assert_eq!(
            all.failures().collect::<Vec<_>>(),
            [(&"b".to_owned(), &printed)]
        );
    }
}
