//! The checks of sources: those that take seconds before anything is built, and the lints with the test programs, which
//! are compiled while the cluster starts and browsers wait, and give way to everything else.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::places::Places;
use super::{Asked, COMPONENTS, Summary, WHOLE_SYSTEM};
use crate::background::Background;
use crate::interruption::Interruption;
use crate::process::{cargo_command, cargo_in_background, describe};
use crate::progress::Step;
use crate::suites::{self, Selection, Suite};
use crate::timeline::Timeline;
use crate::unused;

const LINTS: &str = "lints";

type Check = fn() -> Result<()>;

/// Checks before everything else; one that fails ends the run.
const FIRST: [(&str, Check); 3] = [
    ("formatting", || {
        quietly(&mut cargo_command(&["fmt", "--all", "--check"], &[]))
    }),
    ("unused dependencies and files", unused::check),
    (DEPENDENCIES, || {
        let check = ["deny", "check", "bans", "licenses", "sources"];
        quietly(&mut cargo_command(&check, &[]))
    }),
];
const DEPENDENCIES: &str = "dependencies";

/// Returns the names of the checks, which are parts of a run.
pub fn names() -> impl Iterator<Item = &'static str> {
    FIRST.iter().map(|(name, _)| *name).chain([LINTS])
}

/// Runs the checks that come first, as far as the options name them.
pub fn first(asked: &Asked<'_>, summary: &mut Summary) {
    for (name, check) in FIRST {
        if !asked.wants(name) {
            continue;
        }
        if name == DEPENDENCIES && !is_on_path("cargo-deny") {
            summary.note(
                "dependencies: not checked, since cargo-deny is not installed (cargo install cargo-deny)",
            );
        } else {
            summary.run(name, check);
        }
    }
}

/// Begins to compile and lint what the options name; the tests of each compiled program go to their queues. The result
/// is the summary of both.
pub fn begin(
    asked: &Asked<'_>,
    timeline: &Timeline,
    interruption: &Interruption,
    senders: Places<Sender<Suite>>,
) -> Background<Summary> {
    let compiles = asked.wants(WHOLE_SYSTEM) || asked.wants(COMPONENTS);
    let lints = asked.wants(LINTS);
    let (timings, shared) = (asked.profile, timeline.clone());
    let interruption = interruption.clone();
    let selection = asked.selection();
    Background::start(timeline, "Test programs and lints", move |step| {
        let mut summary = Summary::new(&shared);
        let mut linted = None;
        let mut suites = Places::default();
        if compiles {
            let compile = || compile(timings, step, &selection);
            match shared.record("Test programs", compile) {
                Ok((compiled, lints)) => {
                    suites = compiled;
                    linted = Some(judge(&lints));
                }
                Err(error) => summary.fail("test programs", &format!("{error:#}")),
            }
        }
        // None begins before: compilers would take the processors from tests that measure pods under load.
        senders.send(suites);
        match linted {
            _ if !lints => {}
            Some(result) => summary.ended(LINTS, Duration::ZERO, &result),
            None if interruption.has_come() => summary.fail(LINTS, "not run: interrupted"),
            None => {
                step.say(LINTS);
                summary.run(LINTS, || quietly(&mut cargo_in_background(&["lint"])));
            }
        }
        Ok(summary)
    })
}

/// Compiles the test programs, and chooses among their tests; returns clippy's findings, too.
pub fn compile(
    timings: bool,
    step: &Step,
    selection: &Selection,
) -> Result<(Places<Vec<Suite>>, BTreeSet<String>)> {
    let mut suites = Vec::new();
    let lints = suites::compile(timings, step, |suite| suites.push(suite))?;
    ensure!(!suites.is_empty(), "no test program was compiled");
    Ok((Places::of(suites, selection)?, lints))
}

/// Fails if clippy found anything.
fn judge(lints: &BTreeSet<String>) -> Result<()> {
    let found: String = lints.iter().map(String::as_str).collect();
    ensure!(lints.is_empty(), "clippy is not content\n{found}");
    Ok(())
}

/// Runs cargo and shows its output only if it fails: other tests print meanwhile.
fn quietly(cargo: &mut Command) -> Result<()> {
    let output = cargo.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!(
            "`{}` ended with {}\n{}{}",
            describe(cargo),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}
