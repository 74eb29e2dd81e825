//! What became of each test, read from what libtest prints with `--show-output`, and of each target
//! of a recorded measurement.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

/// How a test ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ended {
    /// It was not among the tests that ran.
    NotRun,
    /// It passed.
    Passed,
    /// It failed.
    Failed,
}

/// Tests by their paths, such as `rotation::a_period_is_counted_on_redis_clock`.
#[derive(Default, Debug)]
pub struct Outcomes {
    ended: BTreeMap<String, Ended>,
    /// Seconds until the world was as it should be again, as tests print them.
    converged: BTreeMap<String, f64>,
    /// At how many requests a test killed the operator.
    requests: BTreeMap<String, String>,
    /// When each row of a recorded result was measured.
    measured: BTreeMap<String, String>,
    /// The test whose output follows.
    shown: Option<String>,
    /// What each test that failed printed last.
    failures: BTreeMap<String, VecDeque<String>>,
    /// The tests that printed what must never be, however rare it is.
    findings: BTreeSet<String>,
    /// How many tests passed and failed, as the program says at its end.
    result: Option<(usize, usize)>,
}

/// A test that prints more shows these last lines of it again: its panic is among them.
const FAILURE_LINES: usize = 60;

impl Outcomes {
    /// Reads the next line.
    pub fn read(&mut self, line: &str) {
        let (printed, line) = (line.trim_end(), line.trim());
        if let Some(test) = between(line, "---- ", " stdout ----") {
            self.shown = Some(test.to_owned());
        } else if ["successes:", "failures:"].contains(&line) {
            self.shown = None;
        } else if let Some((test, ended)) = ended(line) {
            self.note_end(test, ended);
        } else if let Some(result) = result(line) {
            self.result = Some(result);
        } else if let Some(test) = &self.shown {
            if is_finding(line) {
                self.findings.insert(test.clone());
            }
            if let Some(lines) = self.failures.get_mut(test)
                && !is_backtrace(line)
            {
                lines.push_back(printed.to_owned());
                if lines.len() > FAILURE_LINES {
                    lines.pop_front();
                }
            }
            if let Some(seconds) = between(line, "converged after ", " s")
                && let Ok(seconds) = seconds.parse::<f64>()
            {
                let before = self.converged.entry(test.clone()).or_insert(seconds);
                *before = before.max(seconds);
            } else if let Some((_, told)) = line.split_once(" has ")
                && let Some((requests, _)) = told.split_once(" requests;")
            {
                self.requests.insert(test.clone(), requests.to_owned());
            }
        }
    }

    fn note_end(&mut self, test: &str, ended: Ended) {
        // Of two tests of one path the one that failed counts.
        let before = self.ended.entry(test.to_owned()).or_insert(ended);
        *before = (*before).max(ended);
        if ended == Ended::Failed {
            self.failures.entry(test.to_owned()).or_default();
        }
    }

    /// The tests that failed, each with the last lines that it printed.
    pub fn failures(&self) -> impl Iterator<Item = (&String, &VecDeque<String>)> {
        self.failures.iter()
    }

    /// How many tests passed and failed, as the program says at its end: none if it did not come so far.
    pub fn result(&self) -> Option<(usize, usize)> {
        self.result
    }

    /// Whether the test printed that an invariant is violated, or a part of an API key.
    pub fn has_finding(&self, test: &str) -> bool {
        self.findings.contains(test)
    }

    /// Adds what another program printed.
    pub fn add(&mut self, other: Self) {
        for (test, ended) in other.ended {
            self.note_end(&test, ended);
        }
        for (test, lines) in other.failures {
            self.failures.entry(test).or_default().extend(lines);
        }
        for (test, seconds) in other.converged {
            let before = self.converged.entry(test).or_insert(seconds);
            *before = before.max(seconds);
        }
        self.requests.extend(other.requests);
    }

    /// The test failed and has passed since: it counts as passed, and what it printed when it failed is kept.
    pub fn passed_again(&mut self, test: &str) {
        self.ended.insert(test.to_owned(), Ended::Passed);
    }

    /// The test runs again, and longer: what became of it before does not count.
    pub fn forget(&mut self, test: &str) {
        self.ended.remove(test);
    }

    /// Reads the rows of a result of `tests/bench`: each with a target has met it or has not.
    pub fn measured(&mut self, result: &Value) {
        let date = result["date"].as_str().unwrap_or("some day");
        for row in result["rows"].as_array().into_iter().flatten() {
            if let (Some(name), Some(holds)) = (row["name"].as_str(), row["holds"].as_bool()) {
                let ended = if holds { Ended::Passed } else { Ended::Failed };
                self.ended.insert(name.to_owned(), ended);
                self.measured.insert(name.to_owned(), date.to_owned());
            }
        }
    }

    pub fn ended(&self, test: &str) -> Ended {
        self.ended.get(test).copied().unwrap_or(Ended::NotRun)
    }

    /// A test's path, with the number of requests at which it killed the operator; or a row's name and when it
    /// was measured: earlier than the run.
    pub fn described(&self, test: &str) -> String {
        match (self.measured.get(test), self.requests.get(test)) {
            (Some(date), _) => format!("{test} (measured {date})"),
            (None, Some(requests)) => format!("{test} ({requests} requests)"),
            (None, None) => test.to_owned(),
        }
    }

    pub fn converged(&self, test: &str) -> Option<f64> {
        self.converged.get(test).copied()
    }
}

/// The counts in the line with which libtest ends, such as `test result: FAILED. 5 passed; 1 failed; 0 ignored; …`.
fn result(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |name| {
        counts
            .split("; ")
            .find_map(|count| count.strip_suffix(name)?.trim().parse().ok())
    };
    Some((count("passed")?, count("failed")?))
}

/// Whether a line holds what must never be, however rare it is: what `operator/tests/faults/invariants` calls a
/// violation, such as `invariant 9: …`, or the beginning of an API key, of which a test found the text somewhere.
fn is_finding(line: &str) -> bool {
    let violation = line.split("invariant ").skip(1).any(|rest| {
        rest.split_once(':')
            .is_some_and(|(number, _)| number.parse::<u8>().is_ok())
    });
    violation || line.contains("wdk_")
}

fn ended(line: &str) -> Option<(&str, Ended)> {
    let (test, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    match result.split([' ', ',']).next()? {
        "ok" => Some((test, Ended::Passed)),
        "FAILED" => Some((test, Ended::Failed)),
        _ => None,
    }
}

/// A frame of a backtrace, or where its source is.
fn is_backtrace(line: &str) -> bool {
    let number = line.split(": ").next().unwrap_or_default();
    number.parse::<u32>().is_ok() || line.starts_with("at ")
}

fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    line.strip_prefix(before)?.strip_suffix(after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcomes(lines: &[&str]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        lines.iter().for_each(|line| outcomes.read(line));
        outcomes
    }

    #[test]
    fn a_test_has_passed_failed_or_not_run() {
        let read = outcomes(&[
            "test a::one ... ok",
            "test a::two ... FAILED",
            "test a::three ... ignored, for a reason",
        ]);
        let all = ["a::one", "a::two", "a::three"].map(|test| read.ended(test));
        assert_eq!(all, [Ended::Passed, Ended::Failed, Ended::NotRun]);
    }

    #[test]
    fn of_two_tests_of_one_path_the_one_that_failed_counts() {
        let read = outcomes(&["test a ... FAILED", "test a ... ok"]);
        assert_eq!(read.ended("a"), Ended::Failed);
    }

    #[test]
    fn a_target_is_met_or_not_and_a_row_without_one_says_nothing() {
        let row = |name, holds: Option<bool>| json!({ "name": name, "holds": holds });
        let rows = [
            row("met", Some(true)),
            row("missed", Some(false)),
            row("told", None),
        ];
        let mut read = Outcomes::default();
        read.measured(&json!({ "rows": rows }));
        let all = ["met", "missed", "told"].map(|row| read.ended(row));
        assert_eq!(all, [Ended::Passed, Ended::Failed, Ended::NotRun]);
    }

    #[test]
    fn of_a_test_that_runs_again_the_second_run_counts() {
        let mut read = outcomes(&["test a ... ok"]);
        read.forget("a");
        assert_eq!(read.ended("a"), Ended::NotRun);
    }

    #[test]
    fn the_programs_own_count_is_read() {
        assert_eq!(outcomes(&["test a ... ok"]).result(), None);
        let line = "test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.1s";
        assert_eq!(outcomes(&[line]).result(), Some((5, 1)));
    }

    #[test]
    fn a_finding_belongs_to_the_test_that_printed_it() {
        let read = outcomes(&[
            "---- a stdout ----",
            "called `Result::unwrap()` on an `Err` value: invariant 9: a revoked key is accepted",
            "---- b stdout ----",
            "an invariant of b: none",
            "---- c stdout ----",
            "  left: Some(\"wdk_aaaaaaaaaaaa\")",
        ]);
        let found = ["a", "b", "c"].map(|test| read.has_finding(test));
        assert_eq!(found, [true, false, true]);
    }

    #[test]
    fn a_test_that_should_panic_is_called_by_its_path() {
        let read = outcomes(&["test a::b - should panic ... FAILED"]);
        assert_eq!(read.ended("a::b"), Ended::Failed);
    }

    #[test]
    fn a_test_that_passed_when_it_ran_again_counts_as_passed_and_keeps_its_output() {
        let mut all = outcomes(&["test a ... ok"]);
        all.add(outcomes(&[
            "test b ... FAILED",
            "---- b stdout ----",
            "its panic",
        ]));
        all.passed_again("b");
        assert_eq!(
            (all.ended("a"), all.ended("b")),
            (Ended::Passed, Ended::Passed)
        );
        let printed = VecDeque::from(["its panic".to_owned()]);
        assert_eq!(
            all.failures().collect::<Vec<_>>(),
            [(&"b".to_owned(), &printed)]
        );
    }

    #[test]
    fn a_test_tells_at_how_many_requests_it_killed_the_operator() {
        let shown = "---- a stdout ----";
        let read = outcomes(&[shown, "Create has 31 requests; killed 30 times"]);
        assert_eq!(read.described("a"), "a (31 requests)");
    }

    #[test]
    fn a_test_that_failed_shows_what_it_printed_last() {
        let long = ["a line"; FAILURE_LINES];
        let lines = [
            &["test a ... ok", "test b ... FAILED", "successes:"][..],
            &[
                "---- a stdout ----",
                "of a",
                "failures:",
                "---- b stdout ----",
            ],
            &long,
            &["  its panic", "   0: main", "      at main.rs:1"],
            &["failures:", "    b"],
        ];
        let read = outcomes(&lines.concat());
        let failures: Vec<_> = read.failures().collect();
        let printed = [&long[1..], &["  its panic"]].concat();
        let printed = printed.into_iter().map(str::to_owned).collect();
        assert_eq!(failures, [(&"b".to_owned(), &printed)]);
    }

    #[test]
    fn a_time_belongs_to_the_test_whose_output_it_is_in() {
        let read = outcomes(&[
            "converged after 9 s",
            "---- a stdout ----",
            "converged after 0.125 s",
            "converged after 0.5 s",
            "---- b stdout ----",
        ]);
        assert_eq!(read.converged("a"), Some(0.5));
        assert_eq!(read.converged("b"), None);
    }
}
