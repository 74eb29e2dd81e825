//! Progress of a command, and the time of its steps: spinners on a terminal, plain lines otherwise.

use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use crate::timeline::Timeline;

/// Pause between two plain lines in which a long step says that it is still at work.
const PLAIN_INTERVAL: Duration = Duration::from_secs(15);

/// The steps of one command, with the time that each has taken.
pub struct Progress {
    terminal: bool,
    timeline: Timeline,
}

/// A step that is under way: it can say what it is doing.
pub struct Step {
    name: String,
    shown: Shown,
    timeline: Timeline,
    said: Cell<Duration>,
}

/// Places for a step's messages.
enum Shown {
    Bar(ProgressBar),
    Lines,
    /// Message that another step shows.
    Elsewhere(Sender<String>),
}

impl Progress {
    /// Starts progress on standard error; standard output belongs to a command's result.
    pub fn new() -> Self {
        Self::on(&Timeline::start())
    }

    /// Starts progress on standard error, whose steps are part of a longer command.
    pub fn on(timeline: &Timeline) -> Self {
        Self {
            terminal: stderr().is_terminal(),
            timeline: timeline.clone(),
        }
    }

    /// Returns the steps' clock and record.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Does `work` as the step called `name`; an error says which step it was.
    pub fn step<T>(&mut self, name: &str, work: impl FnOnce(&Step) -> Result<T>) -> Result<T> {
        let step = Step::start(name, self.terminal);
        let result = self.timeline.record(name, || work(&step));
        step.finish(result.is_ok());
        result.with_context(|| format!("{name}: failed"))
    }

    /// Returns the time of all steps so far.
    pub fn total(&self) -> Duration {
        self.timeline.elapsed()
    }

    /// Returns the steps that took a second or more, the longest first.
    pub fn longest(&self) -> String {
        let mut steps = self.timeline.spans();
        steps.retain(|step| step.wall() >= Duration::from_secs(1));
        steps.sort_by_key(|step| std::cmp::Reverse(step.wall()));
        let rows = steps
            .iter()
            .map(|step| format!("  {:>7.1} s  {}\n", step.wall().as_secs_f64(), step.name));
        rows.collect()
    }
}

impl Step {
    fn start(name: &str, terminal: bool) -> Self {
        if !terminal {
            eprintln!("{name} …");
            return Self::shown(name, Shown::Lines);
        }
        let bar = ProgressBar::new_spinner().with_prefix(name.to_owned());
        bar.set_style(style("{spinner} {prefix} {elapsed} {wide_msg:.dim}"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self::shown(name, Shown::Bar(bar))
    }

    /// Makes a step without a name: another one shows its messages.
    pub fn sent_to(sender: Sender<String>) -> Self {
        Self::shown("", Shown::Elsewhere(sender))
    }

    fn shown(name: &str, shown: Shown) -> Self {
        Self {
            name: name.to_owned(),
            shown,
            timeline: Timeline::start(),
            said: Cell::new(Duration::ZERO),
        }
    }

    /// Says what the step is doing at this moment.
    pub fn say(&self, message: &str) {
        let taken = self.timeline.elapsed();
        match &self.shown {
            Shown::Bar(bar) => bar.set_message(message.to_owned()),
            Shown::Lines if taken - self.said.get() >= PLAIN_INTERVAL => {
                self.said.set(taken);
                eprintln!("{} … {:.0} s: {message}", self.name, taken.as_secs_f64());
            }
            Shown::Lines => {}
            // The receiver is gone once something else has failed.
            Shown::Elsewhere(sender) => drop(sender.send(message.to_owned())),
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

    fn finish(&self, succeeded: bool) {
        let taken = self.timeline.elapsed();
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
