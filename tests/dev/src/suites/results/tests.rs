//! Tests on a small crate whose tests fail as often as is asked. None of its output is shown: a run that holds it would
//! seem to have failed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use water_harness::scratch_directory;

use super::*;
use crate::interruption::Interruption;
use crate::suites::compile::compile_by;
use crate::timeline::Timeline;

/// Each test counts its own runs in the folder `RUNS`.
const SOURCE: &str = r#"
use std::{env, fs, path::Path};

fn run(name: &str) -> usize {
    let file = Path::new(&env::var("RUNS").unwrap()).join(name);
    let before = fs::read_to_string(&file).unwrap_or_default();
    fs::write(&file, format!("{before}x")).unwrap();
    before.len() + 1
}

#[test] fn passes() { run("passes"); }
#[test] fn once() { assert!(run("once") > 1, "waited 60s for it"); }
#[test] fn twice() { assert!(run("twice") > 2, "waited 60s for it"); }
#[test] fn wrong() { assert_eq!(run("wrong"), 2); }
#[test] fn violates() { assert!(run("violates") > 1, "waited 60s for it: invariant 9: a revoked key is accepted"); }
#[test] fn shows_part() { assert!(run("shows_part") > 1, "waited 60s for it: found wdk_aaaaaaaaaaaa"); }
#[test] fn shows_key() { assert!(run("shows_key") > 1, "wdk_{}_{}", "a".repeat(12), "b".repeat(49)); }
#[test] fn aborts() { if run("aborts") == 1 { std::process::abort() } }
#[test] fn leaves() { if run("leaves") == 1 { std::process::exit(0) } }
#[test] #[ignore = "never"] fn ignored() {}
#[test] fn four_a() { assert!(run("four_a") > 1, "waited 60s for it"); }
#[test] fn four_b() { assert!(run("four_b") > 1, "waited 60s for it"); }
#[test] fn four_c() { assert!(run("four_c") > 1, "waited 60s for it"); }
#[test] fn four_d() { assert!(run("four_d") > 1, "waited 60s for it"); }
"#;

/// Returns the crate's test program, which is compiled once.
fn suite() -> &'static Suite {
    static SUITE: OnceLock<Suite> = OnceLock::new();
    SUITE.get_or_init(|| {
        let folder = scratch_directory("crate").unwrap();
        let manifest = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n[lib]\npath = \"lib.rs\"\n";
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::write(folder.join("lib.rs"), SOURCE).unwrap();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["test", "--quiet", "--lib", "--no-run", "--message-format=json"])
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .current_dir(&folder);
        let mut suites = Vec::new();
        compile_by(&mut cargo, |suite| suites.push(suite)).unwrap();
        suites.pop().unwrap()
    })
}

/// Results of some tests.
struct Ran {
    results: Results,
    ended: Result<()>,
    runs: PathBuf,
}

impl Ran {
    fn of(names: &[&str]) -> Self {
        Self::after(Results::default(), names, Interruption::default())
    }

    fn after(mut results: Results, names: &[&str], interruption: Interruption) -> Self {
        let runs = scratch_directory("runs").unwrap();
        let terms = Terms {
            threads: 1,
            variables: vec![("RUNS", runs.display().to_string())],
            under: &[],
            timeline: Timeline::start(),
            silence: Duration::from_secs(600),
            interruption,
        };
        let tests = names.iter().map(|name| (*name).to_owned()).collect();
        let outcome = suite().of(tests).unwrap().run(&terms);
        let ended = results.add(vec![outcome], &terms, |_| {});
        Self {
            results,
            ended,
            runs,
        }
    }

    fn error(&self) -> String {
        self.ended.as_ref().unwrap_err().to_string()
    }

    /// Returns how often a test ran.
    fn count(&self, test: &str) -> usize {
        fs::read(self.runs.join(test)).map_or(0, |runs| runs.len())
    }

    fn failed(&self, test: &str) -> bool {
        self.results.outcomes.get(test).unwrap().failed
    }
}

fn name(test: &str) -> String {
    format!("{} {test}", suite().name)
}

#[test]
fn a_test_that_fails_once_is_flaky_and_what_it_printed_is_kept() {
    let ran = Ran::of(&["once", "passes"]);
    ran.ended.as_ref().unwrap();
    assert_eq!(ran.results.flaky, [name("once")]);
    assert_eq!((ran.count("once"), ran.count("passes")), (2, 1));
    assert!(!ran.failed("once"));
    let (test, printed) = ran.results.outcomes.failures().next().unwrap();
    assert_eq!(test, "once");
    let panic = |line: &String| line.contains("waited 60s for it");
    assert!(printed.iter().any(panic), "{printed:?}");
}

#[test]
fn a_test_that_fails_twice_fails_the_run_and_runs_no_third_time() {
    let ran = Ran::of(&["twice", "once"]);
    let error = ran.error();
    assert!(error.starts_with(&name("twice")), "{error}");
    assert!(error.ends_with(" (twice)"), "{error}");
    assert_eq!(ran.count("twice"), 2);
    assert_eq!(ran.results.flaky, [name("once")]);
    assert!(ran.failed("twice"));
}

#[test]
fn a_wrong_value_a_violation_and_the_text_of_a_key_never_run_again() {
    for test in ["wrong", "violates", "shows_part"] {
        let ran = Ran::of(&[test]);
        assert!(ran.error().ends_with(" (not run again)"), "{}", ran.error());
        assert_eq!(ran.count(test), 1);
    }

    let ran = Ran::of(&["shows_key"]);
    let found = "holds the text of the API key wdk_";
    assert!(ran.error().contains(found), "{}", ran.error());
    assert_eq!(ran.count("shows_key"), 1);
}

#[test]
fn an_end_that_no_named_test_explains_fails_the_run() {
    for test in ["aborts", "leaves"] {
        let ran = Ran::of(&[test]);
        let error = ran.error();
        assert!(error.contains("no result of its tests"), "{error}");
        assert_eq!(ran.count(test), 1);
    }
}

#[test]
fn a_test_that_did_not_run_fails_the_run() {
    for test in ["ignored", "unknown"] {
        let ran = Ran::of(&["passes", test]);
        let error = ran.error();
        assert!(error.contains("1 of its 2 tests ran"), "{error}");
    }
}

#[test]
fn four_failures_are_more_than_a_run_may_have() {
    let four = ["four_a", "four_b", "four_c", "four_d"];
    let ran = Ran::of(&four);
    for test in four {
        assert!(ran.error().contains(&name(test)), "{}", ran.error());
    }
    assert_eq!(four.map(|test| ran.count(test)), [1; 4]);
    assert!(ran.results.flaky.is_empty());
}

#[test]
fn flaky_tests_of_earlier_parts_count() {
    let before = Results {
        flaky: vec!["a page".to_owned(); MOST_FLAKY],
        ..Results::default()
    };
    let ran = Ran::after(before, &["once"], Interruption::default());
    assert!(ran.error().starts_with(&name("once")), "{}", ran.error());
    assert_eq!(ran.count("once"), 1);
}

#[test]
fn nothing_starts_after_an_interruption() {
    let ran = Ran::after(Results::default(), &["passes"], Interruption::come());
    assert!(ran.error().contains("interrupted"), "{}", ran.error());
    assert_eq!(ran.count("passes"), 0);
}
