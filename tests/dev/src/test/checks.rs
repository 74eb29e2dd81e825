//! Compiling the test programs, which also lints them, while the cluster starts and browsers wait, then the
//! other checks of sources. All of it gives way to everything else.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::{Asked, COMPONENTS, Summary, WHOLE_SYSTEM};
use crate::background::Background;
use crate::process::cargo_in_background;
use crate::progress::Step;
use crate::suites::{self, Suite};
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

/// The suite that needs the cluster.
const E2E: &str = "e2e e2e";

/// The target of suites whose tests measure times, and so have the processors for themselves.
const TIMED: &str = "timed";

/// The suites that take longest begin first.
const LONGEST: [&str; 3] = ["operator it", "gate it", "ingest it"];

/// Queues of test programs, by where they run.
pub struct Queues<Q> {
    /// Test programs that run on the cluster.
    pub whole_system: Q,
    /// Test programs that run at the same time.
    pub components: Q,
    /// Test programs that run one after the other, while nothing else runs.
    pub timed: Q,
}

impl<Q> Queues<Q> {
    fn for_suite(&self, suite: &str) -> &Q {
        if suite == E2E {
            &self.whole_system
        } else if suite.ends_with(TIMED) {
            &self.timed
        } else {
            &self.components
        }
    }
}

/// Begins to compile and to check what the options name; each compiled program goes to its queue. The result
/// is the checks' summary.
pub fn begin(
    asked: &Asked<'_>,
    timeline: &Timeline,
    queues: Queues<Sender<Suite>>,
) -> Background<Summary> {
    let compiles = asked.wants(WHOLE_SYSTEM) || asked.wants(COMPONENTS);
    let wanted: Vec<_> = CHECKS
        .into_iter()
        .filter(|(name, _)| asked.wants(name))
        .collect();
    let (timings, shared) = (asked.profile, timeline.clone());
    Background::start(timeline, "Test programs and checks", move |step| {
        let mut summary = Summary::new(&shared);
        let mut linted = None;
        if compiles {
            let mut suites = Vec::new();
            let finished = |suite: Suite| suites.push(suite);
            let compiled =
                shared.record("Test programs", || suites::compile(timings, step, finished));
            match compiled {
                Ok(lints) => linted = Some(judge(&lints)),
                Err(error) => summary.fail("test programs", &format!("{error:#}")),
            }
            suites.sort_by_key(rank);
            // None begins before: compilers would take the processors from tests that measure pods under load.
            for suite in suites {
                // The part is gone if it has failed.
                let _ = queues.for_suite(&suite.name).send(suite);
            }
        }
        // Ends them.
        drop(queues);
        for (name, check) in wanted {
            match linted.take_if(|_| name == LINTS) {
                Some(result) => summary.ended(name, Duration::ZERO, &result),
                None => checked(&mut summary, name, check, step),
            }
        }
        Ok(summary)
    })
}

/// Fails if clippy found anything.
fn judge(lints: &BTreeSet<String>) -> Result<()> {
    let found: String = lints.iter().map(String::as_str).collect();
    ensure!(lints.is_empty(), "clippy is not content\n{found}");
    Ok(())
}

fn rank(suite: &Suite) -> usize {
    let place = LONGEST.iter().position(|name| *name == suite.name);
    place.unwrap_or(LONGEST.len())
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
