//! Suites by the places where their tests run.

use std::sync::mpsc::Sender;

use anyhow::Result;

use crate::suites::{self, Queue, Selected, Selection, Suite};

/// The suite that needs the cluster, …
const E2E: &str = "e2e e2e";
/// … and the arguments with which cargo compiles no other.
pub const ONLY_E2E: [&str; 2] = ["--test", "e2e"];

/// The suites that take longest begin first.
const LONGEST: [&str; 3] = ["operator it", "gate it", "ingest it"];

/// Something for each place.
#[derive(Debug, Default)]
pub struct Places<T> {
    /// The cluster, whose tests decide themselves which run beside others.
    pub cluster: T,
    /// The machine, where all others leave a processor idle.
    pub idle: T,
    /// The machine, with several suites at a time.
    pub beside: T,
    /// The machine, with one test at a time and nothing else.
    pub alone: T,
}

impl Places<Vec<Suite>> {
    /// Chooses among the tests of these suites.
    pub fn of(mut suites: Vec<Suite>, selection: &Selection) -> Result<Self> {
        let mut places = Self::default();
        suites.sort_by_key(rank);
        for suite in suites {
            let Selected {
                computing,
                beside,
                alone,
            } = selection.of(&suite.name, suite.list()?);
            if suite.name == E2E {
                places.cluster.extend(suite.of([beside, alone].concat()));
            } else {
                places.idle.extend(suite.of(computing));
                places.beside.extend(suite.of(beside));
                places.alone.extend(suite.of(alone));
            }
        }
        Ok(places)
    }

    /// Whether no component's test was chosen.
    pub fn has_no_components(&self) -> bool {
        self.idle.is_empty() && self.beside.is_empty() && self.alone.is_empty()
    }
}

impl Places<Sender<Suite>> {
    /// Fills the queues, and ends them.
    pub fn send(self, suites: Places<Vec<Suite>>) {
        fill(self.cluster, suites.cluster);
        fill(self.idle, suites.idle);
        fill(self.beside, suites.beside);
        fill(self.alone, suites.alone);
    }
}

/// Fills a queue, and ends it.
pub fn fill(queue: Sender<Suite>, suites: Vec<Suite>) {
    // The part that reads it is gone if it has failed.
    suites.into_iter().for_each(|suite| drop(queue.send(suite)));
}

/// Makes a queue for each place. It ends where its sender is dropped.
pub fn queues() -> (Places<Sender<Suite>>, Places<Queue>) {
    let (to_cluster, cluster) = suites::queue();
    let (to_idle, idle) = suites::queue();
    let (to_beside, beside) = suites::queue();
    let (to_alone, alone) = suites::queue();
    let senders = Places {
        cluster: to_cluster,
        idle: to_idle,
        beside: to_beside,
        alone: to_alone,
    };
    let queues = Places {
        cluster,
        idle,
        beside,
        alone,
    };
    (senders, queues)
}

fn rank(suite: &Suite) -> usize {
    let place = LONGEST.iter().position(|name| *name == suite.name);
    place.unwrap_or(LONGEST.len())
}
