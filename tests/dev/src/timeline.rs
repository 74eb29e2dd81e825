//! The steps of a command with the times at which they began and ended, those in the background too.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A clock that starts at zero, and the steps that ran by it. Clones share both.
#[derive(Clone)]
pub struct Timeline {
    origin: Instant,
    steps: Arc<Mutex<Vec<Span>>>,
}

/// A step that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub name: String,
    /// Time since the timeline's start.
    pub begin: Duration,
    pub end: Duration,
}

impl Span {
    /// Returns the time between begin and end.
    pub fn wall(&self) -> Duration {
        self.end.saturating_sub(self.begin)
    }
}

impl Timeline {
    /// Starts an empty timeline at this moment.
    pub fn start() -> Self {
        Self {
            origin: clock(),
            steps: Arc::default(),
        }
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Does `work` as the step called `name`.
    pub fn record<T>(&self, name: &str, work: impl FnOnce() -> T) -> T {
        let begin = self.elapsed();
        let result = work();
        let span = Span {
            name: name.to_owned(),
            begin,
            end: self.elapsed(),
        };
        self.lock().push(span);
        result
    }

    /// Returns the steps that ended so far, the first to begin first and longer before shorter.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = self.lock().clone();
        spans.sort_by_key(|span| (span.begin, std::cmp::Reverse(span.end)));
        spans
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Span>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "durations are shown to people, no decision depends on them"
)]
fn clock() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_within_a_step_follows_it() {
        let timeline = Timeline::start();
        timeline.record("outer", || timeline.clone().record("inner", || ()));
        let spans = timeline.spans();
        let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["outer", "inner"]);
        assert!(spans[0].begin <= spans[1].begin && spans[1].end <= spans[0].end);
    }
}
