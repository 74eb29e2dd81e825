//! `cargo dev test`: every check and every test, on a cluster of its own, with what failed and one summary
//! at the end.

use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::background::Background;
use crate::cluster::Cluster;
use crate::clusters::{Claimed, Clusters, Purpose};
use crate::faults;
use crate::interruption::Interruption;
use crate::leftovers::Lists;
use crate::namespace::Lifetime;
use crate::process::{
    cargo, cargo_command, cargo_searched, run as run_command, run_reporting, under,
};
use crate::progress::{Progress, Step};
use crate::project::project;
use crate::searched::Shown;
use crate::suite::{MOST_FLAKY, Results, Suite};
use crate::test_programs::TestProgram;
use crate::{
    binaries, browser, disk, down, environment, packages, product, programs, unused, up, web,
};

/// One line of the summary: an error makes the whole run fail.
type Part = fn(&mut Run) -> Result<()>;

/// What the parts of a run share.
struct Run {
    /// Parts with tests note what became of each.
    results: Results,
    /// The commands of [`COMPILED`] whose parts run.
    compile: Vec<Compilation>,
    interruption: Interruption,
}

/// How many random sequences of changes and faults a run with all faults tries.
const SEQUENCES: &str = "200";

/// The part that needs the product's binaries.
const WHOLE_SYSTEM: &str = "whole-system tests on a cluster";
const COMPONENTS: &str = "unit and component tests";
const LINTS: &str = "lints";

const LINT: &[&str] = &["lint"];
/// A folder of their own, so that cargo can begin a test while lints are compiled.
const LINTS_FOLDER: &str = "target/lints";

/// GiB that the first run fills in a checkout, …
const FIRST_RUN: u32 = 12;
/// … and a later one.
const LATER_RUN: u32 = 3;

/// What `cargo test` compiles for the two parts with tests.
const E2E: &[&str] = &["--package", "water-e2e"];
const COMPONENT_TESTS: &[&str] = &["--workspace", "--exclude", "water-e2e"];

/// Makes a command of cargo's that compiles something.
type Compilation = fn() -> Command;

/// What the other parts run is compiled so, in this order.
const COMPILED: [(&str, Compilation); 2] = [
    (COMPONENTS, || {
        cargo_command(&[&["test"], COMPONENT_TESTS, &["--no-run"]].concat(), &[])
    }),
    (LINTS, || cargo_command(LINT, &lints_folder())),
];

/// With this scheduling policy a program computes only where nothing else wants to: not even a thread at nice 19 gives
/// way to those in the cluster's control group.
const IDLE: [&str; 3] = ["chrt", "--idle", "0"];

/// What became of each part of the run.
struct Summary {
    lines: Vec<String>,
    failed: bool,
}

/// Runs all parts, or those whose name contains `only`; with `all_faults` the faults that take
/// long, too, and, after all parts, the report of all faults. An error says that something failed, the
/// summary above it what.
pub fn run(only: Option<&str>, all_faults: bool) -> Result<()> {
    let interruption = Interruption::watch()?;
    let is_wanted = |name: &str| only.is_none_or(|wanted| name.contains(wanted));
    if only.is_none() {
        // A run compiles both, the lints last.
        let compiled = ["target/tmp", LINTS_FOLDER];
        let has_run = compiled
            .iter()
            .all(|folder| project().join(folder).exists());
        disk::has_room(if has_run { LATER_RUN } else { FIRST_RUN })?;
    }
    let mut summary = Summary {
        lines: Vec::new(),
        failed: false,
    };
    let mut parts = parts(all_faults, &mut summary);
    parts.retain(|(name, _)| is_wanted(name));
    ensure!(
        !parts.is_empty(),
        "no part of the run is called so: `cargo dev test --help`"
    );
    prepare(is_wanted(WHOLE_SYSTEM))?;
    let compiled = COMPILED.iter().filter(|(part, _)| is_wanted(part));
    let mut run = Run {
        results: Results::default(),
        interruption: interruption.clone(),
        compile: compiled.map(|(_, command)| *command).collect(),
    };
    for (name, part) in parts {
        if interruption.has_come() {
            summary.fail(name, "not run: interrupted");
        } else {
            summary.run(name, || part(&mut run));
        }
    }
    let Results { outcomes, flaky } = run.results;
    for (test, printed) in outcomes.failures() {
        eprintln!("\n── {test} failed");
        printed.iter().for_each(|line| eprintln!("{line}"));
    }
    if all_faults && only.is_none() && !interruption.has_come() {
        let (held, all) = faults::write(outcomes)?;
        summary.note(&format!(
            "faults: {held} of {all} held, as {} says",
            faults::REPORT
        ));
    }
    note_what_is_missing(&mut summary);
    summary.name_flaky(&flaky);
    eprintln!("\nSummary\n{}", summary.lines.join("\n"));
    if summary.failed {
        bail!("not everything passed");
    }
    Ok(())
}

/// Installs and builds what the parts run: pages and binaries for the whole system only.
fn prepare(whole_system: bool) -> Result<()> {
    let mut progress = Progress::new();
    // Beside the Go programs, which leave a core idle while they are downloaded and linked.
    let rest = Background::start(move |step| {
        packages::install_missing(&packages::CLUSTER, step)?;
        packages::install_missing(&packages::BENCHMARKS, step)?;
        packages::install_missing(&packages::TESTS, step)?;
        packages::install_missing(&packages::BROWSER, step)?;
        if whole_system {
            web::build(step)?;
            binaries::build(step)?;
        }
        Ok(())
    });
    progress.step(
        "Kubernetes and its companions, built from Go modules",
        programs::build_missing,
    )?;
    progress.step("Debian packages, pages and binaries", |step| {
        rest.finish(step)
    })
}

/// The parts of a run in their order. The summary is told of one that this machine cannot run.
fn parts(all_faults: bool, summary: &mut Summary) -> Vec<(&'static str, Part)> {
    let mut parts: Vec<(&str, Part)> = vec![
        ("formatting", |_| cargo(&["fmt", "--all", "--check"], &[])),
        ("unused dependencies and files", |_| unused::check()),
    ];
    if is_on_path("cargo-deny") {
        parts.push(("dependencies", |_| {
            cargo(&["deny", "check", "bans", "licenses", "sources"], &[])
        }));
    } else {
        summary.note("dependencies: not checked, since cargo-deny is not installed (cargo install cargo-deny)");
    }
    parts.extend([
        (WHOLE_SYSTEM, whole_system as Part),
        (LINTS, |_| cargo(LINT, &lints_folder())),
        ("three rounds of a cluster leave nothing behind", |_| {
            three_rounds()
        }),
        (COMPONENTS, unit_and_component_tests),
    ]);
    if all_faults {
        parts.push(("faults that take long", long_faults));
    }
    parts
}

/// Notes the tests that did nothing, since what they read is not on this machine.
fn note_what_is_missing(summary: &mut Summary) {
    if !vigieau_levels().exists() {
        summary.note(&format!(
            "real alert levels: not tested, since {} is absent (WATER_TEST_VIGIEAU names another folder)",
            vigieau_levels().display()
        ));
    }
    if std::env::var_os("WATER_FORMER_BINARIES").is_none() {
        summary.note(
            "operators of two versions by turns: not tested, since WATER_FORMER_BINARIES names no folder with \
             the programs of the version before",
        );
    }
}

impl Run {
    /// Runs test programs, and again what failed.
    fn suite(&mut self, programs: &[TestProgram], variables: &[(&str, String)]) -> Result<()> {
        let suite = Suite {
            programs,
            arguments: &[],
            variables,
            shown: Shown::Here,
            is_interrupted: &|| self.interruption.has_come(),
        };
        suite.run(&mut self.results)
    }
}

impl Summary {
    #[expect(
        clippy::disallowed_methods,
        reason = "durations are shown to people, no decision depends on them"
    )]
    fn run(&mut self, name: &str, part: impl FnOnce() -> Result<()>) {
        eprintln!("\n── {name}");
        let started = Instant::now();
        let result = part();
        let taken = started.elapsed();
        match result {
            Ok(()) => self
                .lines
                .push(format!("✓ {name} ({:.0} s)", taken.as_secs_f64())),
            Err(error) => {
                eprintln!("{name}: {error:#}");
                self.fail(
                    name,
                    &format!("failed after {:.0} s: {error}", taken.as_secs_f64()),
                );
            }
        }
    }

    fn note(&mut self, line: &str) {
        self.lines.push(format!("  {line}"));
    }

    /// Names the flaky tests at the beginning of a line each, where they are found; too many fail the run.
    fn name_flaky(&mut self, flaky: &[String]) {
        self.lines
            .extend(flaky.iter().map(|test| format!("flaky: {test}")));
        if flaky.len() > MOST_FLAKY {
            let reason = format!("{}, and a run may have {MOST_FLAKY}", flaky.len());
            self.fail("flaky tests", &reason);
        }
    }

    fn fail(&mut self, name: &str, reason: &str) {
        self.failed = true;
        self.lines.push(format!("✗ {name}: {reason}"));
    }
}

/// Compiles what the parts of a run need, in their order, giving way to whatever else runs.
fn compile(commands: &[Compilation], interruption: &Interruption, step: &Step) {
    for command in commands {
        if interruption.has_come() {
            return;
        }
        // What does not compile fails its own part.
        let _ = run_reporting(&mut under(&IDLE, &command()), &mut |line| {
            step.say(line.trim_start());
        });
    }
}

/// The variable that names the folder in which lints are compiled.
fn lints_folder() -> [(&'static str, String); 1] {
    [("CARGO_TARGET_DIR", LINTS_FOLDER.to_owned())]
}

fn unit_and_component_tests(run: &mut Run) -> Result<()> {
    let processors = available_parallelism().context("cannot count the processors")?;
    // Most tests wait for servers most of their time.
    let threads = (
        "RUST_TEST_THREADS",
        (processors.get() * 4).min(16).to_string(),
    );
    let tested = run.suite(&compiled(COMPONENT_TESTS)?, &[threads]);
    if run.interruption.has_come() {
        return tested;
    }
    // Examples in documentation have no programs of their own.
    let examples = [&["test"], COMPONENT_TESTS, &["--doc"]].concat();
    let examples = cargo_searched(&examples, &[], |_| {});
    tested.and(examples)
}

/// What `cargo test` leaves out since it takes minutes: the model's wider bounds, tests, kills, restarts,
/// and random sequences.
fn long_faults(run: &mut Run) -> Result<()> {
    // Other sequences every day, the same ones all day. They print their seed.
    let day = run_command(Command::new("date").args(["--utc", "+%Y%j"]))?;
    let seed = std::env::var("WATER_FAULT_SEED").unwrap_or(day.trim().into());
    let variables = [
        ("WATER_FAULTS", "all".to_owned()),
        ("WATER_FAULT_SEQUENCES", SEQUENCES.to_owned()),
        ("WATER_FAULT_SEED", seed),
    ];
    let model = compiled(&["--package", "water-model"])?;
    let model = run.suite(&model, &[("WATER_MODEL", "full".to_owned())]);
    let mut tests = |test: &str| {
        let programs = compiled(&["--package", "water-operator", "--test", test])?;
        // A shorter run of them, among the component tests, does not stand for this one.
        for program in &programs {
            let listed = run_command(program.command().arg("--list"))?;
            let listed = listed
                .lines()
                .filter_map(|line| line.strip_suffix(": test"));
            listed.for_each(|test| run.results.outcomes.forget(test));
        }
        run.suite(&programs, &variables)
    };
    let long = tests("faults_long");
    let whole = tests("faults");
    model.and(long).and(whole)
}

/// Starts and stops the same cluster three times; each time the machine looks as before.
fn three_rounds() -> Result<()> {
    for _ in 0..3 {
        on_a_cluster(|cluster, progress| {
            up::start_node(cluster, Lifetime::WithThisProcess, progress)
        })?;
    }
    Ok(())
}

fn whole_system(run: &mut Run) -> Result<()> {
    on_a_cluster(|cluster, progress| {
        up::start(
            cluster,
            Lifetime::WithThisProcess,
            &talkative(cluster),
            progress,
        )?;
        // A rollout needs a second version: the same sources, built to report another one.
        up::provide_images(
            cluster,
            &binaries::after(&product::installed_version(cluster)?),
            Background::start(binaries::build),
            progress,
        )?;
        let variables = environment::variables(cluster)?;
        // Browsers and these tests wait most of their time.
        let (commands, interruption) = (run.compile.clone(), run.interruption.clone());
        let (named, programs) = mpsc::channel();
        let compiled = Background::start(move |step| {
            let mut cargo = under(&IDLE, &compilation(E2E));
            let programs =
                TestProgram::compile(&mut cargo, &mut |line| step.say(line.trim_start()));
            // They are waited for.
            drop(named.send(programs));
            compile(&commands, &interruption, step);
            Ok(())
        });
        let in_browser = browser::run(cluster, &mut run.results.flaky);
        let programs = progress.step("Whole-system tests, compiled", |_| {
            programs.recv().context("nobody compiles them")?
        });
        let tested = programs.and_then(|programs| run.suite(&programs, &variables));
        progress.step("Test programs and lints", |step| compiled.finish(step))?;
        tested.and(in_browser)
    })
}

/// Cargo, which compiles tests and names their programs.
fn compilation(tests: &[&str]) -> Command {
    let named = ["--no-run", "--message-format=json-render-diagnostics"];
    cargo_command(&[&["test"], tests, &named].concat(), &[])
}

/// The programs of these tests, compiled now.
fn compiled(tests: &[&str]) -> Result<Vec<TestProgram>> {
    TestProgram::compile(&mut compilation(tests), &mut |line| eprintln!("{line}"))
}

/// Values of the chart with which the product says the most of itself: it is searched for keys, and a
/// test is the collector of its spans.
fn talkative(cluster: &Cluster) -> [String; 3] {
    [
        "operator.logLevel=debug".to_owned(),
        "api.telemetry.logFilter=debug".to_owned(),
        format!(
            "api.telemetry.otlpEndpoint=http://{}:4318",
            cluster.host_address()
        ),
    ]
}

/// Does `work` on a new cluster and stops it, whatever came of the work; nothing of it may stay.
fn on_a_cluster(work: impl FnOnce(&Cluster, &mut Progress) -> Result<()>) -> Result<()> {
    let claimed: Claimed = Clusters::of_user()?.claim_free(Purpose::Test)?;
    let cluster = &claimed.cluster;
    let before = Lists::now(cluster)?;
    let worked = work(cluster, &mut Progress::new());
    let stopped = Progress::new().step("Stop the cluster", |_| down::stop(cluster, false));
    worked.and(stopped)?;
    let differences = Lists::differences(&before, &Lists::now(cluster)?);
    if !differences.is_empty() {
        bail!(
            "the machine differs from what it was before the cluster:\n{}",
            differences.join("\n")
        );
    }
    Ok(())
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Where the alert levels are that cannot be part of this repository.
fn vigieau_levels() -> PathBuf {
    std::env::var_os("WATER_TEST_VIGIEAU")
        .map_or_else(|| project().join("../shared/data"), PathBuf::from)
        .join("vigieau_departements_2026-06-29_2026-07-02.csv")
}
