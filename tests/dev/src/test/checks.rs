//! The checks of sources: those that take seconds before anything is built, and the lints with the test programs, which
//! are compiled while the cluster starts and its tests wait, and give way to everything else.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::places::{ONLY_E2E, Places, fill};
use super::{Asked, COMPONENTS, Summary, WHOLE_SYSTEM};
use crate::background::Background;
use crate::interruption::Interruption;
use crate::process::{cargo_command, cargo_in_background, describe};
use crate::progress::Step;
use crate::suites::{self, Selection, Suite, Tier};
use crate::timeline::Timeline;
use crate::unused;

const LINTS: &str = "lints";

type Check = fn() -> Result<()>;

/// Suites by their places, and clippy's findings.
type Compiled = (Places<Vec<Suite>>, BTreeSet<String>);

/// Checks before everything else; one that fails ends the run.
const FIRST: [(&str, Check); 3] = [
    ("formatting", || {
        quietly(&mut cargo_command(&["fmt", "--all", "--check"], &[]))
    }),
    (UNUSED, unused::check),
    (DEPENDENCIES, || {
        let check = ["deny", "check", "bans", "licenses", "sources"];
        quietly(&mut cargo_command(&check, &[]))
    }),
];
const UNUSED: &str = "unused dependencies and files";
const DEPENDENCIES: &str = "dependencies";

/// Returns the names of the checks, which are parts of a run.
pub fn names() -> impl Iterator<Item = &'static str> {
    FIRST.iter().map(|(name, _)| *name).chain([LINTS])
}

/// Runs the checks that come first, as far as the options name them. If all pass, returns the one whose tool was not
/// installed yet, which has begun.
pub fn first(
    asked: &Asked<'_>,
    timeline: &Timeline,
    summary: &mut Summary,
) -> Option<Background<Summary>> {
    let mut lacks_tool = false;
    for (name, check) in FIRST {
        if !asked.wants(name) {
            continue;
        }
        if name == UNUSED && !unused::is_installed() {
            lacks_tool = true;
        } else if name == DEPENDENCIES && !is_on_path("cargo-deny") {
            summary.note(
                "dependencies: not checked, since cargo-deny is not installed (cargo install cargo-deny)",
            );
        } else {
            summary.run(name, check);
        }
    }
    (lacks_tool && !summary.has_failed()).then(|| begin_unused(timeline))
}

/// Begins to install the tool that finds what is unused, which takes a minute, and to run it.
fn begin_unused(timeline: &Timeline) -> Background<Summary> {
    let shared = timeline.clone();
    Background::start(timeline, "Installation of cargo-shear", move |step| {
        let mut summary = Summary::new(&shared);
        summary.run(UNUSED, || {
            unused::install(step)?;
            unused::check()
        });
        Ok(summary)
    })
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
    // With long tests none begins before all are compiled: compilers would take the processors from tests that measure
    // pods under load.
    let cluster_first = asked.wants(WHOLE_SYSTEM) && asked.tier < Tier::Long;
    Background::start(timeline, "Test programs and lints", move |step| {
        let mut summary = Summary::new(&shared);
        let mut linted = None;
        if compiles {
            let compile = |more: &[&str]| compile(timings, step, more, &selection);
            match compile_for(senders, cluster_first, &shared, compile) {
                Ok(lints) => linted = Some(judge(&lints)),
                Err(error) => summary.fail("test programs", &format!("{error:#}")),
            }
        }
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

/// Fills the queues with what `compile` makes, the cluster's before the others are compiled if it comes first; returns
/// clippy's findings. All queues end, whatever comes of it.
fn compile_for(
    senders: Places<Sender<Suite>>,
    cluster_first: bool,
    timeline: &Timeline,
    compile: impl Fn(&[&str]) -> Result<Compiled>,
) -> Result<BTreeSet<String>> {
    let Places {
        cluster,
        idle,
        beside,
        alone,
    } = senders;
    let cluster = if cluster_first {
        // Cargo tells its lints again when it compiles all.
        let (suites, _) =
            timeline.record("Test program of the whole system", || compile(&ONLY_E2E))?;
        fill(cluster, suites.cluster);
        None
    } else {
        Some(cluster)
    };
    let (suites, lints) = timeline.record("Test programs", || compile(&[]))?;
    if let Some(cluster) = cluster {
        fill(cluster, suites.cluster);
    }
    fill(idle, suites.idle);
    fill(beside, suites.beside);
    fill(alone, suites.alone);
    Ok(lints)
}

/// Compiles the test programs, or those that `more` arguments of cargo's choose, and chooses among their tests.
pub fn compile(
    timings: bool,
    step: &Step,
    more: &[&str],
    selection: &Selection,
) -> Result<Compiled> {
    let mut suites = Vec::new();
    let lints = suites::compile(timings, step, more, |suite| suites.push(suite))?;
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
