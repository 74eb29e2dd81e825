//! `cargo dev test`: every check and the tests of a tier, on a separate cluster, with the failures and one summary at
//! the end.
//!
//! The checks that take seconds come first. Test programs are compiled and linted during the tests of the whole system,
//! the one with these tests before the others, and yield to them. So do tests that only compute. Other tests do not run
//! meanwhile: the servers that they wait for would get too little of the processors.

mod checks;
mod places;
mod record;
mod summary;
mod whole_system;

use std::fs;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::background::Background;
use crate::browser::BrowserTests;
use crate::faults;
use crate::interruption::Interruption;
use crate::process::IDLE;
use crate::profile::Profile;
use crate::progress::{Progress, Step};
use crate::project::project;
use crate::stress::Stress;
use crate::suites::{MOST_FLAKY, Outcome, Queue, Results, Selection, Terms, Tier};
use crate::timeline::Timeline;
use crate::{binaries, clusters, disk, marks, packages, programs, web};
use places::{Places, queues};
use record::{RECORD, Tested};
use summary::Summary;

/// File with the tables and the summary of the last whole run, from the checkout's root, …
const REPORT: &str = "target/test-report.txt";
/// … and of the last one of some parts or tests.
const REPORT_OF_SOME: &str = "target/test-report-only.txt";

const WHOLE_SYSTEM: &str = "whole-system tests on a cluster";
const COMPONENTS: &str = "unit and component tests";

/// GiB that the first run fills in a checkout, …
const FIRST_RUN: u32 = 12;
/// … and a later one.
const LATER_RUN: u32 = 3;

/// Options of the user.
pub struct Asked<'a> {
    /// Text in the names of the parts that run; or, where no part has it, in the paths of the tests.
    pub only: Option<&'a str>,
    /// Tests that run.
    pub tier: Tier,
    /// Table of the compilations' times at the end.
    pub profile: bool,
    /// Load beside the run.
    pub stress: bool,
}

impl Asked<'_> {
    fn wants(&self, part: &str) -> bool {
        self.only.is_none_or(|only| part.contains(only))
    }

    /// Returns the file of the run's report, from the checkout's root.
    fn report(&self) -> &'static str {
        self.only.map_or(REPORT, |_| REPORT_OF_SOME)
    }

    /// Whether whole parts run, not single tests.
    fn is_for_parts(&self) -> bool {
        let mut parts = checks::names().chain([WHOLE_SYSTEM, COMPONENTS]);
        parts.any(|part| self.wants(part))
    }

    fn selection(&self) -> Selection {
        let text = self.only.filter(|_| !self.is_for_parts());
        Selection {
            tier: self.tier,
            text: text.map(str::to_owned),
        }
    }
}

/// State that the parts of a run share.
struct Run {
    timeline: Timeline,
    /// Time without a line after which a test program hangs.
    silence: Duration,
    interruption: Interruption,
    summary: Summary,
    results: Results,
}

/// Runs what the options name. An error says that something failed, the summary above it what.
pub fn run(asked: &Asked<'_>) -> Result<()> {
    let is_whole = asked.only.is_none();
    // Whatever ends this run, the report is not an earlier one's.
    fs::remove_file(project().join(asked.report())).ok();
    let interruption = Interruption::watch()?;
    if asked.is_for_parts() && asked.wants(WHOLE_SYSTEM) {
        clusters::make_way_for_test()?;
    }
    // After what an earlier run has left is gone: it is no reason to refuse.
    if is_whole {
        let has_run = marks::exist();
        disk::has_room(if has_run { LATER_RUN } else { FIRST_RUN })?;
    }
    let _stress = asked.stress.then(Stress::start).transpose()?;
    let timeline = Timeline::start();
    let profile = Profile::start(&timeline);
    let mut run = Run {
        summary: Summary::new(&timeline),
        timeline,
        silence: silence(asked.tier),
        interruption,
        results: Results::default(),
    };
    if is_whole && asked.tier < Tier::Long {
        run.summary.note(&record::age()?);
    }
    let tested = (is_whole && asked.tier >= Tier::Long).then(Tested::now);
    let tested = tested.transpose()?;
    if let Some(refusal) = tested.as_ref().and_then(Tested::refusal) {
        eprintln!("{refusal}");
        run.summary.note(refusal);
    }
    if asked.is_for_parts() {
        run.parts(asked)?;
    } else {
        run.tests(asked)?;
    }
    for (test, printed) in run.results.outcomes.failures() {
        eprintln!("\n── {test} failed");
        printed.iter().for_each(|line| eprintln!("{line}"));
    }
    run.summary.name_flaky(&run.results.flaky, MOST_FLAKY);
    let has_run = run.results.count > 0 && !run.interruption.has_come();
    if is_whole && asked.tier >= Tier::Faults && has_run {
        run.report_faults();
    }
    if let Some(tested) = tested
        && !run.summary.has_failed()
    {
        let Results { count, flaky, .. } = &run.results;
        let recorded = tested.record(run.timeline.elapsed(), *count, flaky);
        run.summary.ended(RECORD, Duration::ZERO, &recorded);
    }
    let profile = profile.report(run.results.times, asked.profile);
    let report = format!("{profile}\nSummary\n{}", run.summary);
    eprintln!("{report}");
    keep(&report, asked.report())?;
    if run.summary.has_failed() {
        bail!("not everything passed");
    }
    Ok(())
}

impl Run {
    /// Runs the parts of the options, with all tests of the tier.
    fn parts(&mut self, asked: &Asked<'_>) -> Result<()> {
        let unused = checks::first(asked, &self.timeline, &mut self.summary);
        if self.summary.has_failed() {
            return Ok(());
        }
        prepare(asked.wants(WHOLE_SYSTEM), &self.timeline)?;
        if let Some(unused) = unused {
            let mut progress = Progress::on(&self.timeline);
            let checked = progress.step("cargo-shear", |step| unused.finish(step))?;
            self.summary.extend(checked);
            if self.summary.has_failed() {
                return Ok(());
            }
        }
        let (senders, queues) = queues();
        let checks = checks::begin(asked, &self.timeline, &self.interruption, senders);
        let computing = asked.wants(COMPONENTS);
        let computing = computing.then(|| self.compute(&queues)).transpose()?;
        if asked.wants(WHOLE_SYSTEM) {
            let in_browser = BrowserTests::of(&asked.selection());
            self.part(WHOLE_SYSTEM, |run| {
                whole_system::run(run, asked.tier, &queues.cluster, Some(&in_browser))
            });
        }
        if let Some(computing) = computing {
            let components = |run: &mut Self| run.components(&queues, computing, asked.tier);
            self.part(COMPONENTS, components);
        }
        let mut progress = Progress::on(&self.timeline);
        let checked = progress.step("Lints", |step| checks.finish(step))?;
        self.summary.extend(checked);
        Ok(())
    }

    /// Runs the tests whose path has the text of the options, and what they need.
    fn tests(&mut self, asked: &Asked<'_>) -> Result<()> {
        prepare(false, &self.timeline)?;
        let selection = asked.selection();
        let mut progress = Progress::on(&self.timeline);
        let compile = |step: &_| checks::compile(asked.profile, step, &[], &selection);
        let (suites, _) = progress.step("Test programs", compile)?;
        let find = |step: &_| BrowserTests::find(&selection, step);
        let in_browser = progress.step("List of browser tests", find)?;
        let components = !suites.has_no_components();
        let on_cluster = !suites.cluster.is_empty() || in_browser.is_some();
        ensure!(
            components || on_cluster,
            "no part and no test is called so, or only long tests are, which need `--long`"
        );
        let (senders, queues) = queues();
        senders.send(suites);
        let computing = self.compute(&queues)?;
        if on_cluster {
            clusters::make_way_for_test()?;
            prepare(true, &self.timeline)?;
            self.part(WHOLE_SYSTEM, |run| {
                whole_system::run(run, asked.tier, &queues.cluster, in_browser.as_ref())
            });
        }
        if components {
            let components = |run: &mut Self| run.components(&queues, computing, asked.tier);
            self.part(COMPONENTS, components);
        }
        Ok(())
    }

    fn part(&mut self, name: &str, part: impl FnOnce(&mut Self) -> Result<()>) {
        if self.interruption.has_come() {
            self.summary.fail(name, "not run: interrupted");
            return;
        }
        eprintln!("\n── {name}");
        let (begin, before) = (self.timeline.elapsed(), self.results.count);
        let result = self.timeline.clone().record(name, || {
            part(self)?;
            ensure!(self.results.count > before, "no test ran");
            Ok(())
        });
        let taken = self.timeline.elapsed() - begin;
        self.summary.ended(name, taken, &result);
    }

    /// Returns the terms on which suites run beside each other.
    fn terms(&self) -> Result<Terms> {
        let processors = available_parallelism().context("cannot count the processors")?;
        Ok(Terms {
            // Most tests wait for servers most of their time.
            threads: (processors.get() * 2).min(8),
            variables: Vec::new(),
            under: &[],
            timeline: self.timeline.clone(),
            silence: self.silence,
            interruption: self.interruption.clone(),
        })
    }

    /// Begins the tests that only compute, one suite after the other, where all else leaves a processor idle.
    fn compute(&self, queues: &Places<Queue>) -> Result<Background<Vec<Outcome>>> {
        let suites = queues.idle.clone();
        let terms = Terms {
            under: &IDLE,
            // Under stress they may get none for as long as the whole system is tested.
            silence: 3 * self.silence,
            ..self.terms()?
        };
        let name = "Tests that only compute";
        let work = move |_: &Step| Ok(suites.work(&terms));
        Ok(Background::start(&self.timeline, name, work))
    }

    /// Runs those of the tests that only compute which have not begun, and waits for the others, which would get no
    /// processor any more; then runs all other tests, two suites at a time: while one waits for its last tests, the other
    /// uses the processors. Tests that measure come after them, one by one.
    fn components(
        &mut self,
        queues: &Places<Queue>,
        computing: Background<Vec<Outcome>>,
        tier: Tier,
    ) -> Result<()> {
        let terms = self.terms()?;
        let mut progress = Progress::on(&self.timeline);
        let rest = "Rest of the tests that only compute";
        let mut outcomes = queues.idle.work(&terms);
        outcomes.extend(progress.step(rest, |step| computing.finish(step))?);
        let (second, also) = (queues.beside.clone(), terms.clone());
        let second = Background::start(&self.timeline, "Every second suite", move |_| {
            Ok(second.work(&also))
        });
        outcomes.extend(queues.beside.work(&terms));
        outcomes.extend(progress.step("Last suite", |step| second.finish(step))?);
        let beside = self.read(outcomes, &terms);
        let mut alone = Terms {
            threads: 1,
            ..terms
        };
        if tier >= Tier::Faults {
            alone.variables = faults::variables()?;
        }
        let outcomes = queues.alone.work(&alone);
        both(beside, self.read(outcomes, &alone))
    }

    /// Notes the results of suites' tests, and runs those that failed again. An error names those that failed twice, or
    /// must not run again.
    fn read(&mut self, outcomes: Vec<Outcome>, terms: &Terms) -> Result<()> {
        self.results.add(outcomes, terms, Outcome::print)
    }

    /// Writes the report of all faults.
    fn report_faults(&mut self) {
        let report = faults::REPORT;
        match faults::write(std::mem::take(&mut self.results.outcomes)) {
            Ok((held, all)) => self
                .summary
                .note(&format!("faults: {held} of {all} held, as {report} says")),
            Err(error) => self.summary.fail(report, &format!("{error:#}")),
        }
    }
}

/// Returns the time in which a test program prints a line unless it hangs: several times that of the longest test.
fn silence(tier: Tier) -> Duration {
    let minutes = if tier >= Tier::Faults { 180 } else { 20 };
    Duration::from_secs(60 * minutes)
}

/// Returns the errors of both.
fn both(one: Result<()>, other: Result<()>) -> Result<()> {
    match (one, other) {
        (Err(one), Err(other)) => bail!("{one:#}; {other:#}"),
        (one, other) => one.and(other),
    }
}

/// Keeps the tables and the summary of a run as a file.
fn keep(report: &str, file: &str) -> Result<()> {
    let file = project().join(file);
    fs::create_dir_all(file.parent().context("a folder")?)
        .and_then(|()| fs::write(&file, format!("{report}\n")))
        .with_context(|| format!("cannot write {}", file.display()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_some_tests_keeps_the_report_of_the_last_whole_run() {
        let report = |only| {
            let asked = Asked {
                only,
                tier: Tier::First,
                profile: false,
                stress: false,
            };
            asked.report()
        };
        assert_eq!(report(None), REPORT);
        assert_ne!(report(Some("lints")), REPORT);
        assert_ne!(report(Some("gate it limits")), REPORT);
    }
}
