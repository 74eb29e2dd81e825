//! The compiled test programs of the workspace, run by this tool itself: several at a time, and without
//! cargo's lock, so that lints compile meanwhile.
//!
//! libtest reports a test's time under an option that it has for nightly compilers only; `RUSTC_BOOTSTRAP` in
//! the program's own environment, not the compiler's, allows the option.

mod compile;
mod results;
mod selection;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use water_harness::find_key_text;

use crate::interruption::Interruption;
use crate::process::run_until;
use crate::timeline::Timeline;

pub use compile::compile;
pub use results::{MOST_FLAKY, Results};
pub use selection::{Selected, Selection, Tier};

/// A test program.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Package and target, such as `gate it`.
    pub name: String,
    pub program: PathBuf,
    /// Tests that run.
    pub tests: Vec<String>,
    /// Folder of the package, in which cargo runs tests.
    folder: PathBuf,
}

/// Suites that wait to be run, in their order. Clones share them.
#[derive(Clone)]
pub struct Queue(Arc<Mutex<Receiver<Suite>>>);

/// Makes an empty queue, and the sender that fills it: the queue ends where its sender is dropped.
pub fn queue() -> (Sender<Suite>, Queue) {
    let (sender, suites) = channel();
    (sender, Queue(Arc::new(Mutex::new(suites))))
}

/// The terms on which suites run.
#[derive(Clone)]
pub struct Terms {
    /// Tests of a suite at a time.
    pub threads: usize,
    pub variables: Vec<(&'static str, String)>,
    /// Words before each program: another one that becomes it, such as `chrt`.
    pub under: &'static [&'static str],
    pub timeline: Timeline,
    /// Time without a line of output after which a program is taken for one that hangs, and killed.
    pub silence: Duration,
    /// No suite begins after it, and those that run are killed.
    pub interruption: Interruption,
}

/// A suite that ran to its end.
pub struct Outcome {
    pub suite: Suite,
    /// Lines that it printed.
    pub lines: Vec<String>,
    /// Status of the program; an error, too, if an API key was among the lines.
    pub ended: Result<ExitStatus>,
}

/// Wall time of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestTime {
    /// Name of its suite, or `browser`.
    pub suite: String,
    pub name: String,
    pub seconds: f64,
}

impl Queue {
    /// Runs one suite after the other to the queue's end, and prints the output of each when it has ended,
    /// since other suites may print meanwhile.
    pub fn work(&self, terms: &Terms) -> Vec<Outcome> {
        std::iter::from_fn(|| self.next())
            .map(|suite| suite.run(terms))
            .inspect(Outcome::print)
            .collect()
    }

    /// Returns the next suite, which may still have to be compiled.
    pub fn next(&self) -> Option<Suite> {
        let suites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        suites.recv().ok()
    }
}

impl Outcome {
    pub fn print(&self) {
        let mut shown = io::stdout().lock();
        // Without a reader the results still count.
        let _ = writeln!(
            shown,
            "\n     Running {}\n{}",
            self.suite.name,
            self.lines.join("\n")
        );
    }
}

impl Suite {
    /// Returns the suite with these of its tests; none without any.
    pub fn of(&self, tests: Vec<String>) -> Option<Self> {
        let some = Some(tests).filter(|tests| !tests.is_empty());
        some.map(|tests| Self {
            tests,
            ..self.clone()
        })
    }

    /// Runs its tests to their end.
    fn run(self, terms: &Terms) -> Outcome {
        let mut lines = Vec::new();
        let ended = if terms.interruption.has_come() {
            Err(anyhow!("not run: interrupted"))
        } else {
            let tests = self.tests.iter().map(String::as_str);
            let arguments: Vec<_> = ["--exact"].into_iter().chain(tests).collect();
            let start = || self.start(terms, &arguments, &mut lines);
            terms.timeline.record(&self.name, start)
        };
        Outcome {
            suite: self,
            lines,
            ended,
        }
    }

    /// Runs the program. An API key in the output is an error, whatever the program's status.
    fn start(
        &self,
        terms: &Terms,
        arguments: &[&str],
        lines: &mut Vec<String>,
    ) -> Result<ExitStatus> {
        // It ends with this process, whose own group a kill of the run reaches.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .args(terms.under)
            .arg(&self.program)
            .args(arguments)
            // Passing tests print the figures that they measured.
            .args(["--show-output", "-Zunstable-options", "--report-time"])
            .env("RUSTC_BOOTSTRAP", "1")
            // A panic names its place; tests in which the product panics must not walk its stack.
            .env("RUST_BACKTRACE", "0")
            .env("RUST_TEST_THREADS", terms.threads.to_string())
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .envs(terms.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        let mut key = None;
        let mut report = |line: &str| {
            key = key.take().or_else(|| find_key_text(line.as_bytes()));
            lines.push(line.to_owned());
        };
        let is_over = |silence| silence > terms.silence || terms.interruption.has_come();
        let status = run_until(&mut command, &mut report, is_over);
        if let Some(key) = key {
            bail!("the output holds the text of the API key {key}…");
        }
        status
    }
}

/// Returns the time in a line such as `test limits::a_minute ... ok <1.234s>`.
pub fn time(suite: &str, line: &str) -> Option<TestTime> {
    let (name, ended) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, time) = ended.split_once('<')?;
    Some(TestTime {
        suite: suite.to_owned(),
        name: name.to_owned(),
        seconds: time.strip_suffix("s>")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;
    use crate::process::IDLE;

    /// Returns what a suite that runs the script prints, and how it ends. It is not printed: the run that this test is
    /// part of would find the key in it.
    fn run_script(script: &str) -> (Vec<String>, Result<ExitStatus>) {
        let mut lines = Vec::new();
        let ended = suite().start(&terms(), &["-c", script], &mut lines);
        (lines, ended)
    }

    fn suite() -> Suite {
        Suite {
            name: "crate it".to_owned(),
            program: "/bin/sh".into(),
            tests: Vec::new(),
            folder: "/".into(),
        }
    }

    fn terms() -> Terms {
        Terms {
            threads: 1,
            variables: vec![("GREETING", "hello".to_owned())],
            under: &[],
            timeline: Timeline::start(),
            silence: Duration::from_secs(600),
            interruption: Interruption::default(),
        }
    }

    #[test]
    fn a_suite_runs_with_its_variables_and_its_lines_are_kept() {
        let (lines, ended) =
            run_script("echo test a ... ok; echo $GREETING $RUST_TEST_THREADS >&2");
        assert!(ended.unwrap().success());
        assert_eq!(lines, ["test a ... ok", "hello 1"]);
    }

    #[test]
    fn a_suite_runs_under_the_words_of_its_terms() {
        let terms = Terms {
            under: &IDLE,
            ..terms()
        };
        let mut lines = Vec::new();
        let ended = suite().start(&terms, &["-c", "chrt --pid $$"], &mut lines);
        assert!(ended.unwrap().success());
        assert!(lines[0].ends_with(" SCHED_IDLE"), "{lines:?}");
    }

    #[test]
    fn a_suite_that_hangs_or_is_interrupted_is_killed() {
        let signal = |silence, interruption| {
            let terms = Terms {
                silence,
                interruption,
                ..terms()
            };
            let arguments = ["-c", "exec sleep 600"];
            let ended = suite().start(&terms, &arguments, &mut Vec::new());
            ended.unwrap().signal()
        };
        let (none, long) = (Interruption::default(), Duration::from_secs(600));
        assert_eq!(signal(Duration::ZERO, none), Some(9));
        assert_eq!(signal(long, Interruption::come()), Some(9));
    }

    #[test]
    fn a_key_in_the_output_is_an_error() {
        let error = |script: &str| run_script(script).1.unwrap_err().to_string();
        assert_eq!(run_script("exit 101").1.unwrap().code(), Some(101));
        let key = format!("wdk_{}_{}", "a".repeat(12), "b".repeat(49));
        let found = "the output holds the text of the API key wdk_aaaaaaaaaaaa…";
        assert_eq!(error(&format!("echo {key}")), found);
    }

    #[test]
    fn a_tests_time_is_read_whatever_became_of_it() {
        let seconds = |line: &str| time("crate it", line).map(|test| test.seconds);
        assert_eq!(seconds("test a::b ... ok <1.250s>"), Some(1.25));
        assert_eq!(seconds("test a::b ... FAILED <0.001s>"), Some(0.001));
        assert_eq!(seconds("test a::b ... ok"), None);
        assert_eq!(seconds("running 2 tests"), None);
    }
}
