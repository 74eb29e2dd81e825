//! `cargo dev test`: every check and every test, on a separate cluster, with the failures and one summary at
//! the end.
//!
//! Test programs are compiled, and sources checked, during the tests of the whole system, and yield to them.
//! Other tests do not run meanwhile, since these measure times.

mod checks;
mod long_faults;
mod summary;
mod whole_system;

use std::thread::available_parallelism;

use anyhow::{Context, Result, bail, ensure};

use crate::background::Background;
use crate::faults;
use crate::interruption::Interruption;
use crate::profile::Profile;
use crate::progress::Progress;
use crate::suites::{self, MOST_FLAKY, Outcome, Queue, Results, Terms};
use crate::timeline::Timeline;
use crate::{binaries, clusters, disk, marks, packages, programs, web};
use checks::Queues;
use summary::Summary;

const WHOLE_SYSTEM: &str = "whole-system tests on a cluster";
const COMPONENTS: &str = "unit and component tests";
const LONG_FAULTS: &str = "faults that take long";

/// GiB that the first run fills in a checkout, …
const FIRST_RUN: u32 = 12;
/// … and a later one.
const LATER_RUN: u32 = 3;

/// Options of the user.
pub struct Asked<'a> {
    /// Name of the parts that run: those whose name contains it.
    pub only: Option<&'a str>,
    /// The faults that take long, too, and, after all parts, the report of all faults.
    pub faults: bool,
    /// Tables of the time at the end.
    pub profile: bool,
}

impl Asked<'_> {
    fn wants(&self, part: &str) -> bool {
        self.only.is_none_or(|only| part.contains(only))
    }
}

/// State that the parts of a run share.
struct Run {
    timeline: Timeline,
    interruption: Interruption,
    summary: Summary,
    results: Results,
}

/// Runs the parts of the options. An error says that something failed, the summary above it what.
pub fn run(asked: &Asked<'_>) -> Result<()> {
    let mut parts = checks::names().chain([WHOLE_SYSTEM, COMPONENTS, LONG_FAULTS]);
    ensure!(
        parts.any(|part| asked.wants(part)),
        "no part of the run is called so: `cargo dev test --help`"
    );
    let interruption = Interruption::watch()?;
    if asked.wants(WHOLE_SYSTEM) {
        clusters::refuse_running()?;
    }
    if asked.only.is_none() {
        let has_run = marks::exist();
        disk::has_room(if has_run { LATER_RUN } else { FIRST_RUN })?;
    }
    let timeline = Timeline::start();
    let profile = asked.profile.then(|| Profile::start(&timeline));
    prepare(asked.wants(WHOLE_SYSTEM), &timeline)?;
    let mut run = Run {
        summary: Summary::new(&timeline),
        timeline,
        interruption,
        results: Results::default(),
    };
    run.parts(asked)?;
    let Results {
        outcomes,
        flaky,
        times,
    } = run.results;
    for (test, printed) in outcomes.failures() {
        eprintln!("\n── {test} failed");
        printed.iter().for_each(|line| eprintln!("{line}"));
    }
    if asked.faults && asked.only.is_none() && !run.interruption.has_come() {
        let (held, all) = faults::write(outcomes)?;
        let report = faults::REPORT;
        run.summary
            .note(&format!("faults: {held} of {all} held, as {report} says"));
    }
    if let Some(profile) = profile {
        eprintln!("{}", profile.report(times));
    }
    run.summary.name_flaky(&flaky, MOST_FLAKY);
    eprintln!("\nSummary\n{}", run.summary);
    if run.summary.has_failed() {
        bail!("not everything passed");
    }
    Ok(())
}

impl Run {
    fn parts(&mut self, asked: &Asked<'_>) -> Result<()> {
        let (whole_system, whole_systems) = suites::queue();
        let (component, components) = suites::queue();
        let (timed, timed_components) = suites::queue();
        let senders = Queues {
            whole_system,
            components: component,
            timed,
        };
        let checks = checks::begin(asked, &self.timeline, senders);
        if asked.wants(WHOLE_SYSTEM) {
            self.part(WHOLE_SYSTEM, |run| whole_system::run(run, &whole_systems));
        }
        if asked.wants(COMPONENTS) {
            self.part(COMPONENTS, |run| {
                run.components(&components, &timed_components)
            });
        }
        let mut progress = Progress::on(&self.timeline);
        let checked = progress.step("Rest of the checks", |step| checks.finish(step))?;
        self.summary.extend(checked);
        if asked.faults && asked.wants(LONG_FAULTS) {
            self.part(LONG_FAULTS, long_faults::run);
        }
        Ok(())
    }

    fn part(&mut self, name: &str, part: impl FnOnce(&mut Self) -> Result<()>) {
        if self.interruption.has_come() {
            self.summary.fail(name, "not run: interrupted");
            return;
        }
        eprintln!("\n── {name}");
        let begin = self.timeline.elapsed();
        let result = self.timeline.clone().record(name, || part(self));
        let taken = self.timeline.elapsed() - begin;
        self.summary.ended(name, taken, &result);
    }

    /// Runs two suites at a time: while one waits for its last tests, the other uses the processors. Those
    /// that measure times come after them, alone.
    fn components(&mut self, components: &Queue, timed: &Queue) -> Result<()> {
        let processors = available_parallelism().context("cannot count the processors")?;
        let terms = Terms {
            // Most tests wait for servers most of their time.
            threads: (processors.get() * 2).min(8),
            variables: Vec::new(),
            timeline: self.timeline.clone(),
            interruption: self.interruption.clone(),
        };
        let (second, also) = (components.clone(), terms.clone());
        let second = Background::start(&self.timeline, "Every second suite", move |_| {
            Ok(second.work(&also))
        });
        let mut outcomes = components.work(&terms);
        let mut progress = Progress::on(&self.timeline);
        outcomes.extend(progress.step("Last suite", |step| second.finish(step))?);
        outcomes.extend(timed.work(&Terms {
            threads: 1,
            ..terms.clone()
        }));
        self.read(outcomes, &terms)
    }

    /// Notes the results of suites' tests, and runs those that failed again. An error names those that failed twice, or
    /// must not run again.
    fn read(&mut self, outcomes: Vec<Outcome>, terms: &Terms) -> Result<()> {
        self.results.add(outcomes, terms, Outcome::print)
    }
}

/// Installs and builds what the parts run: pages and binaries for the whole system only.
fn prepare(whole_system: bool, timeline: &Timeline) -> Result<()> {
    let mut progress = Progress::on(timeline);
    // Together with the Go programs, which leave a core idle while they are downloaded and linked.
    let (shared, name) = (timeline.clone(), "Debian packages, pages and binaries");
    let rest = Background::start(timeline, name, move |step| {
        shared.record("Debian packages", || {
            use packages::{BENCHMARKS, BROWSER, CLUSTER, TESTS};
            packages::install_missing(&[CLUSTER, BENCHMARKS, TESTS, BROWSER], step)
        })?;
        if whole_system {
            shared.record("Pages of the portal", || web::build(step))?;
            shared.record("Binaries", || binaries::build(step))?;
        }
        Ok(())
    });
    progress.step(
        "Kubernetes and its companions, built from Go modules",
        programs::build_missing,
    )?;
    progress.step("Rest of the packages, pages and binaries", |step| {
        rest.finish(step)
    })
}
