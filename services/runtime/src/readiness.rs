//! Readiness is a set of named latches: ready when all are set and the process is not stopping.

use std::sync::{Arc, Mutex, PoisonError};

/// Ability of the process to answer requests; without it, the missing latches.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Name of each latch and whether it is set, in order of creation; changed by the [`Latch`] of that
    /// index.
    latches: Vec<(&'static str, bool)>,
    stopping: bool,
}

/// A condition of readiness. Its holder says when it is met.
#[derive(Debug)]
pub struct Latch {
    readiness: Readiness,
    index: usize,
}

impl Readiness {
    /// Adds a condition, not yet met. `/ready` shows the name as missing: `first snapshot`.
    pub fn latch(&self, name: &'static str) -> Latch {
        self.with(|state| {
            state.latches.push((name, false));
            Latch {
                readiness: self.clone(),
                index: state.latches.len() - 1,
            }
        })
    }

    /// Returns what keeps the process from being ready; empty when it is ready.
    pub fn missing(&self) -> Vec<&'static str> {
        self.with(|state| {
            let unset = state.latches.iter().filter(|(_, set)| !set);
            let stopping = state.stopping.then_some("not stopping");
            unset.map(|(name, _)| *name).chain(stopping).collect()
        })
    }

    /// Whether nothing is missing.
    pub fn is_ready(&self) -> bool {
        self.missing().is_empty()
    }

    /// Makes the process unready permanently, whatever the latches say.
    pub fn stop(&self) {
        self.with(|state| state.stopping = true);
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        // A panic cannot leave the state half changed: each change is one assignment.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Latch {
    /// Meets the condition.
    pub fn set(&self) {
        self.readiness
            .with(|state| state.latches[self.index].1 = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_when_every_latch_is_set() {
        let readiness = Readiness::default();
        let (directory, feed) = (readiness.latch("directory"), readiness.latch("feed"));
        directory.set();
        assert_eq!(readiness.missing(), ["feed"]);
        feed.set();
        assert!(readiness.is_ready());
    }

    #[test]
    fn a_stopping_process_is_unready_for_good() {
        let readiness = Readiness::default();
        let latch = readiness.latch("snapshot");
        latch.set();
        readiness.stop();
        latch.set();
        assert_eq!(readiness.missing(), ["not stopping"]);
    }
}
