//! What the tool is doing, and where the time went: spinners on a terminal, plain lines otherwise.

use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

/// How often a long step says in plain lines that it is still at work.
const PLAIN_INTERVAL: Duration = Duration::from_secs(15);

/// The steps of one command, with the time that each has taken.
pub struct Progress {
    terminal: bool,
    taken: Vec<(String, Duration)>,
    started: Instant,
}

/// A step that is under way: it can say what it is doing.
pub struct Step {
    name: String,
    shown: Shown,
    started: Instant,
    said: Cell<Duration>,
}

/// Where a step says what it does.
enum Shown {
    Bar(ProgressBar),
    Lines,
    /// Somebody else shows it.
    Told(Sender<String>),
}

impl Progress {
    /// Progress on standard error; standard output belongs to a command's result.
    pub fn new() -> Self {
        Self {
            terminal: stderr().is_terminal(),
            taken: Vec::new(),
            started: clock(),
        }
    }

    /// Does `work` as the step called `name`; an error says which step it was.
    pub fn step<T>(&mut self, name: &str, work: impl FnOnce(&Step) -> Result<T>) -> Result<T> {
        let step = Step::start(name, self.terminal);
        let result = work(&step);
        let taken = step.started.elapsed();
        step.finish(result.is_ok(), taken);
        self.taken.push((name.to_owned(), taken));
        result.with_context(|| format!("{name}: failed"))
    }

    /// The time of all steps so far.
    pub fn total(&self) -> Duration {
        self.started.elapsed()
    }

    /// Where the time went: the steps that took a second or more, the longest first.
    pub fn longest(&self) -> String {
        let mut steps: Vec<_> = self
            .taken
            .iter()
            .filter(|(_, taken)| *taken >= Duration::from_secs(1))
            .collect();
        steps.sort_by_key(|(_, taken)| std::cmp::Reverse(*taken));
        let rows = steps
            .iter()
            .map(|(name, taken)| format!("  {:>7.1} s  {name}\n", taken.as_secs_f64()));
        rows.collect()
    }
}

impl Step {
    fn start(name: &str, terminal: bool) -> Self {
        if !terminal {
            eprintln!("{name} …");
            return Self::of(name, Shown::Lines);
        }
        let bar = ProgressBar::new_spinner().with_prefix(name.to_owned());
        bar.set_style(style("{spinner} {prefix} {elapsed} {wide_msg:.dim}"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self::of(name, Shown::Bar(bar))
    }

    /// A step without a name of its own: what it says is sent on.
    pub fn told_to(told: Sender<String>) -> Self {
        Self::of("", Shown::Told(told))
    }

    fn of(name: &str, shown: Shown) -> Self {
        Self {
            name: name.to_owned(),
            shown,
            started: clock(),
            said: Cell::new(Duration::ZERO),
        }
    }

    /// Says what the step is doing at this moment.
    pub fn say(&self, message: &str) {
        let taken = self.started.elapsed();
        match &self.shown {
            Shown::Bar(bar) => bar.set_message(message.to_owned()),
            Shown::Lines if taken - self.said.get() >= PLAIN_INTERVAL => {
                self.said.set(taken);
                eprintln!("{} … {:.0} s: {message}", self.name, taken.as_secs_f64());
            }
            Shown::Lines => {}
            // Nobody listens any more once something else has failed.
            Shown::Told(told) => drop(told.send(message.to_owned())),
        }
    }

    /// Says how many of how many parts are done, as a bar where there is room for one.
    pub fn count(&self, done: usize, all: usize, message: &str) {
        match &self.shown {
            Shown::Bar(bar) if all > 0 => {
                bar.set_style(style(
                    "{spinner} {prefix} {elapsed} {bar:24} {pos}/{len} {wide_msg:.dim}",
                ));
                bar.set_length(all as u64);
                bar.set_position(done as u64);
                bar.set_message(message.to_owned());
            }
            _ => self.say(&format!("{done} of {all}: {message}")),
        }
    }

    fn finish(&self, succeeded: bool, taken: Duration) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
        let mark = if succeeded { "✓" } else { "✗" };
        eprintln!("{mark} {} ({:.1} s)", self.name, taken.as_secs_f64());
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates above are valid")
}

#[expect(
    clippy::disallowed_methods,
    reason = "durations are shown to people, no decision depends on them"
)]
fn clock() -> Instant {
    Instant::now()
}
