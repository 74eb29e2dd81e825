//! Compiling the test programs, which also lints them, while the cluster starts and browsers wait, then the
//! other checks of sources. All of it gives way to everything else.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::places::Places;
use super::{Asked, COMPONENTS, Summary, WHOLE_SYSTEM};
use crate::background::Background;
use crate::interruption::Interruption;
use crate::process::cargo_in_background;
use crate::progress::Step;
use crate::suites::{self, Selection, Suite};
use crate::timeline::Timeline;
use crate::unused;

const LINTS: &str = "lints";

type Check = fn() -> Result<()>;

const CHECKS: [(&str, Check); 4] = [
    ("formatting", || quietly(&["fmt", "--all", "--check"])),
    (LINTS, || quietly(&["lint"])),
    ("unused dependencies and files", unused::check),
    ("dependencies", || {
        quietly(&["deny", "check", "bans", "licenses", "sources"])
    }),
];

/// Returns the names of the checks, which are parts of a run.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|(name, _)| *name)
}

/// Begins to compile and to check what the options name; the tests of each compiled program go to their queues. The
/// result is the checks' summary.
pub fn begin(
    asked: &Asked<'_>,
    timeline: &Timeline,
    interruption: &Interruption,
    senders: Places<Sender<Suite>>,
) -> Background<Summary> {
    let compiles = asked.wants(WHOLE_SYSTEM) || asked.wants(COMPONENTS);
    let wanted: Vec<_> = CHECKS
        .into_iter()
        .filter(|(name, _)| asked.wants(name))
        .collect();
    let (timings, shared) = (asked.profile, timeline.clone());
    let interruption = interruption.clone();
    let selection = asked.selection();
    Background::start(timeline, "Test programs and checks", move |step| {
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
        for (name, check) in wanted {
            if interruption.has_come() {
                summary.fail(name, "not run: interrupted");
                continue;
            }
            match linted.take_if(|_| name == LINTS) {
                Some(result) => summary.ended(name, Duration::ZERO, &result),
                None => checked(&mut summary, name, check, step),
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

fn checked(summary: &mut Summary, name: &str, check: Check, step: &Step) {
    if name == "dependencies" && !is_on_path("cargo-deny") {
        summary.note(
            "dependencies: not checked, since cargo-deny is not installed (cargo install cargo-deny)",
        );
        return;
    }
    step.say(name);
    summary.run(name, check);
}

/// Runs cargo and shows its output only if it fails: other tests print meanwhile.
fn quietly(arguments: &[&str]) -> Result<()> {
    let output = cargo_in_background(arguments)
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!(
            "`cargo {}` ended with {}\n{}{}",
            arguments.join(" "),
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
