//! On a small crate whose tests fail as often as they are told to. None of its output is shown: a run that holds it
//! would seem to have failed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use water_harness::scratch_directory;

use super::*;
use crate::faults::Ended;

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
#[test] fn once() { assert!(run("once") > 1); }
#[test] fn twice() { assert!(run("twice") > 2); }
#[test] fn violates() { assert!(run("violates") > 1, "invariant 9: a revoked key is accepted"); }
#[test] fn shows_part() { assert!(run("shows_part") > 1, "found wdk_aaaaaaaaaaaa"); }
#[test] fn shows_key() { assert!(run("shows_key") > 1, "wdk_{}_{}", "a".repeat(12), "b".repeat(49)); }
#[test] fn aborts() { if run("aborts") == 1 { std::process::abort() } }
#[test] fn leaves() { if run("leaves") == 1 { std::process::exit(0) } }
#[test] fn four_a() { assert!(run("four_a") > 1); }
#[test] fn four_b() { assert!(run("four_b") > 1); }
#[test] fn four_c() { assert!(run("four_c") > 1); }
#[test] fn four_d() { assert!(run("four_d") > 1); }
"#;

/// The crate's test program, compiled once.
fn program() -> &'static [TestProgram] {
    static PROGRAM: OnceLock<Vec<TestProgram>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = scratch_directory("crate").unwrap();
        let manifest = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n[lib]\npath = \"lib.rs\"\n";
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::write(folder.join("lib.rs"), SOURCE).unwrap();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["test", "--no-run", "--message-format=json-render-diagnostics"])
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .current_dir(&folder);
        TestProgram::compile(&mut cargo, &mut |_| {}).unwrap()
    })
}

/// What became of the tests whose names hold one of some words.
struct Ran {
    results: Results,
    ended: Result<()>,
    runs: PathBuf,
}

impl Ran {
    fn of(names: &[&str]) -> Self {
        Self::after(Results::default(), names, false)
    }

    fn after(mut results: Results, names: &[&str], is_interrupted: bool) -> Self {
        let runs = scratch_directory("runs").unwrap();
        let suite = Suite {
            programs: program(),
            arguments: names,
            variables: &[("RUNS", runs.display().to_string())],
            shown: Shown::Nowhere,
            is_interrupted: &|| is_interrupted,
        };
        let ended = suite.run(&mut results);
        Self {
            results,
            ended,
            runs,
        }
    }

    fn error(&self) -> String {
        self.ended.as_ref().unwrap_err().to_string()
    }

    /// How often a test ran.
    fn count(&self, test: &str) -> usize {
        fs::read(self.runs.join(test)).map_or(0, |runs| runs.len())
    }
}

fn name(test: &str) -> String {
    format!("{} {test}", program()[0].name())
}

#[test]
fn a_test_that_fails_once_is_flaky_and_what_it_printed_is_kept() {
    let ran = Ran::of(&["once", "passes"]);
    ran.ended.as_ref().unwrap();
    assert_eq!(ran.results.flaky, [name("once")]);
    assert_eq!((ran.count("once"), ran.count("passes")), (2, 1));
    assert_eq!(ran.results.outcomes.ended("once"), Ended::Passed);
    let (test, printed) = ran.results.outcomes.failures().next().unwrap();
    assert_eq!(test, "once");
    let panic = |line: &String| line.contains("assertion failed: run(\"once\") > 1");
    assert!(printed.iter().any(panic), "{printed:?}");
}

#[test]
fn a_test_that_fails_twice_fails_the_run_and_runs_no_third_time() {
    let ran = Ran::of(&["twice", "once"]);
    assert_eq!(ran.error(), format!("{} (twice)", name("twice")));
    assert_eq!(ran.count("twice"), 2);
    assert_eq!(ran.results.flaky, [name("once")]);
    assert_eq!(ran.results.outcomes.ended("twice"), Ended::Failed);
}

#[test]
fn a_violation_and_the_text_of_a_key_are_never_run_again() {
    for test in ["violates", "shows_part"] {
        let ran = Ran::of(&[test]);
        assert_eq!(ran.error(), format!("{} (not run again)", name(test)));
        assert_eq!(ran.count(test), 1);
    }

    let ran = Ran::of(&["shows_key"]);
    assert!(
        ran.error().contains("holds the text of the API key wdk_"),
        "{}",
        ran.error()
    );
    assert_eq!(ran.count("shows_key"), 1);
}

#[test]
fn an_end_that_no_named_test_explains_fails_the_run() {
    for test in ["aborts", "leaves"] {
        let ran = Ran::of(&[test]);
        assert!(
            ran.error().contains("no result of its tests"),
            "{}",
            ran.error()
        );
        assert_eq!(ran.count(test), 1);
    }
}

#[test]
fn four_failures_are_more_than_a_run_may_have() {
    let ran = Ran::of(&["four"]);
    let four = ["four_a", "four_b", "four_c", "four_d"];
    assert_eq!(ran.error(), four.map(name).join("; "));
    assert_eq!(four.map(|test| ran.count(test)), [1; 4]);
    assert!(ran.results.flaky.is_empty());
}

#[test]
fn flaky_tests_of_earlier_suites_count() {
    let before = Results {
        flaky: vec!["a page".to_owned(); MOST_FLAKY],
        ..Results::default()
    };
    let ran = Ran::after(before, &["once"], false);
    assert_eq!(ran.error(), name("once"));
    assert_eq!(ran.count("once"), 1);
}

#[test]
fn nothing_is_started_after_an_interruption() {
    let ran = Ran::after(Results::default(), &["passes"], true);
    assert_eq!(ran.error(), "interrupted");
    assert_eq!(ran.count("passes"), 0);
}
