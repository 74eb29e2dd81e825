//! The tests of a run: those of its tier whose path contains a text.

use std::process::Command;

use anyhow::Result;

use super::Suite;
use crate::process::run;

/// Module of the tests that take minutes.
const LONG: &str = "long";
/// Module of the tests that judge times, rates or memory.
const MEASUREMENTS: &str = "measurements";
/// Suites with tests that have a longer form, in which they judge times, too, and what the name of the test or of one of
/// its modules begins with.
const LONGER_FORMS: [(&str, &str); 4] = [
    ("operator it", "fault"),
    ("operator it", "api_namespace_deletion"),
    ("history it", "fault"),
    ("model model", ""),
];

/// Suites whose tests only compute, and the module of those that start servers all the same.
const COMPUTING: [(&str, &str); 2] = [
    ("ingest unit (water-ingest, binary)", ""),
    ("model model", "on_redis"),
];

/// Tests of a run; each tier has those of the one before, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Tests that every change has to pass.
    First,
    /// Tests that take minutes, or judge times, rates or memory, too: one of their modules is called `long` or
    /// `measurements`.
    Long,
    /// The same, those of faults in their longer form.
    Faults,
}

/// Choice of tests.
#[derive(Clone, Debug)]
pub struct Selection {
    pub tier: Tier,
    /// Text in the paths of all tests that run.
    pub text: Option<String>,
}

/// Tests of a suite that run; each list may be empty.
#[derive(Debug, Default, PartialEq)]
pub struct Selected {
    /// Tests that wait for nothing, and so may run where others leave a processor idle. With long tests, beside which
    /// nothing may compute, there are none.
    pub computing: Vec<String>,
    /// Tests that run beside others.
    pub beside: Vec<String>,
    /// Tests that run one by one, with nothing beside them.
    pub alone: Vec<String>,
}

impl Selection {
    /// Chooses among a suite's tests. A test's path is the suite's name and that of the test, such as
    /// `gate it limits::a_minute`.
    pub fn of(&self, suite: &str, mut tests: Vec<String>) -> Selected {
        tests.retain(|test| {
            let long = is_within(test, LONG) || is_within(test, MEASUREMENTS);
            let wanted = self.tier >= Tier::Long || !long;
            let text = self.text.as_deref().unwrap_or_default();
            wanted && format!("{suite} {test}").contains(text)
        });
        let (alone, others): (_, Vec<_>) = tests.into_iter().partition(|test| {
            let long_form = self.tier >= Tier::Faults && has_longer_form(suite, test);
            is_within(test, MEASUREMENTS) || long_form
        });
        let is_light = |test: &String| self.tier < Tier::Long && only_computes(suite, test);
        let (computing, beside) = others.into_iter().partition(is_light);
        Selected {
            computing,
            beside,
            alone,
        }
    }
}

fn only_computes(suite: &str, test: &str) -> bool {
    let mut computing = COMPUTING.iter().filter(|(name, _)| *name == suite);
    computing.any(|(_, with_servers)| !is_within(test, with_servers))
}

fn has_longer_form(suite: &str, test: &str) -> bool {
    let mut forms = LONGER_FORMS.iter().filter(|(name, _)| *name == suite);
    forms.any(|(_, beginning)| test.split("::").any(|name| name.starts_with(beginning)))
}

impl Suite {
    /// Returns the paths of the program's tests.
    pub fn list(&self) -> Result<Vec<String>> {
        let mut program = Command::new(&self.program);
        let printed = run(program.args(["--list", "--format", "terse"]))?;
        let tests = printed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        Ok(tests.map(str::to_owned).collect())
    }
}

/// Whether one of the test's modules has this name.
fn is_within(test: &str, module: &str) -> bool {
    test.rsplit("::").skip(1).any(|name| name == module)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(tier: Tier, text: &str) -> [Vec<String>; 2] {
        select_in("gate it", tier, text)
    }

    fn select_in(suite: &str, tier: Tier, text: &str) -> [Vec<String>; 2] {
        let text = Some(text.to_owned()).filter(|text| !text.is_empty());
        let tests = [
            "a::short",
            "long::b",
            "a::long::c",
            "faults::d",
            "prolong::e",
            "a::long",
            "a::measurements::f",
        ];
        let tests = tests.map(str::to_owned).to_vec();
        let Selected { beside, alone, .. } = Selection { tier, text }.of(suite, tests);
        [beside, alone]
    }

    #[test]
    fn a_test_is_long_by_the_whole_name_of_a_module_and_runs_alone_if_it_measures() {
        let [beside, alone] = select(Tier::First, "");
        assert_eq!(beside, ["a::short", "faults::d", "prolong::e", "a::long"]);
        assert!(alone.is_empty());
        let [beside, alone] = select(Tier::Long, "");
        assert_eq!(beside.len(), 6);
        assert_eq!(alone, ["a::measurements::f"]);
    }

    #[test]
    fn faults_in_their_longer_form_run_alone() {
        let alone = |suite| select_in(suite, Tier::Faults, "")[1].clone();
        assert_eq!(alone("gate it"), ["a::measurements::f"]);
        assert_eq!(alone("operator it"), ["faults::d", "a::measurements::f"]);
        assert!(has_longer_form("history it", "outages::fault_28_a_restart"));
        assert!(!has_longer_form("gate it", "outages::fault_28_a_restart"));
        assert_eq!(alone("model model").len(), 7);
    }

    #[test]
    fn tests_that_only_compute_run_apart_unless_long_ones_run_too() {
        let select = |suite: &str, tier| {
            let tests = ["explorations::a", "on_redis::b"].map(str::to_owned);
            Selection { tier, text: None }.of(suite, tests.to_vec())
        };
        let model = select("model model", Tier::First);
        assert_eq!(model.computing, ["explorations::a"]);
        assert_eq!(model.beside, ["on_redis::b"]);
        assert!(select("gate it", Tier::First).computing.is_empty());
        assert_eq!(select("model model", Tier::Long).beside.len(), 2);
    }

    #[test]
    fn a_text_is_found_in_the_names_of_suite_module_and_test() {
        assert_eq!(select(Tier::First, "long::")[0], ["prolong::e"]);
        assert_eq!(select(Tier::Long, "long::").concat().len(), 3);
        assert_eq!(select(Tier::First, "gate it a::s")[0], ["a::short"]);
        assert_eq!(select(Tier::Long, "operator").concat().len(), 0);
    }
}
