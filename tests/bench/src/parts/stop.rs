//! Work of many tasks for one slice: what they did, counted, and what this process spent on it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::cpu;
use crate::load::Slice;

/// Shared by the tasks of one slice.
#[derive(Debug, Default)]
pub struct Stop {
    come: AtomicBool,
    done: AtomicU64,
}

impl Stop {
    /// Whether the slice has ended.
    pub fn has_come(&self) -> bool {
        self.come.load(Relaxed)
    }

    /// Adds what was done.
    pub fn count(&self, done: u64) {
        self.done.fetch_add(done, Relaxed);
    }

    /// Lets the tasks work for one slice and ends them; this process' CPU time for one piece of
    /// work that they counted.
    pub async fn after(&self, slice: Slice, tasks: &mut JoinSet<Result<()>>) -> Result<Duration> {
        let counted = async {
            sleep(slice.warm_up).await;
            let before = (cpu::own()?, self.done.load(Relaxed));
            sleep(slice.counted).await;
            let (spent, done) = (cpu::own()? - before.0, self.done.load(Relaxed) - before.1);
            ensure!(done > 0, "nothing was done in {:?}", slice.counted);
            Ok(spent.div_f64(done as f64))
        };
        let cost = tokio::select! {
            cost = counted => cost?,
            Some(ended) = tasks.join_next() => match ended? {
                Err(error) => return Err(error),
                Ok(()) => bail!("a task ended before its time"),
            },
        };
        self.come.store(true, Relaxed);
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(cost)
    }
}
