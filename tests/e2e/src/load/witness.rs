//! A thread on each core that needs next to nothing and comes before all ordinary ones: it is late where its core
//! stands still, such as one that a virtual machine's host does not let run.
//!
//! A request goes through half a dozen programs. Where one core of several stands still, whatever ran on it waits for
//! it, and the rest goes on: that a request failed meanwhile may be due to it, and is not proven to be. So the loads
//! excuse few failures, and only in few standstills, however many cores there are.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::time::Instant;
use water_harness::cores;

/// Interval at which such a thread runs.
const EVERY: Duration = Duration::from_millis(20);
/// Shortest standstill that is recorded: five attempts of a gate to connect to a service would have passed.
const LONG: Duration = Duration::from_millis(500);
/// Real-time priority of such a thread, the lowest but nine, which every ordinary thread is below.
const PRIORITY: u8 = 10;

/// A time in which a core ran nothing, or several did, each for a part of it.
#[derive(Clone, Copy, Debug)]
pub struct Standstill {
    /// Beginning of it.
    pub from: Instant,
    /// End of it.
    pub to: Instant,
}

/// The running threads, which end when this is dropped.
pub struct Witness {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Standstill>>>,
}

impl Witness {
    /// Starts one for each core that this program may use. A thread to which the machine refuses its core or its
    /// priority sees nothing, so that it excuses no failure.
    pub fn start() -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let (ready, is_ready) = mpsc::channel();
        let start = |core| {
            let (ends, ready) = (Arc::clone(&is_over), ready.clone());
            thread::spawn(move || {
                let can_see = cores::take(core, PRIORITY).is_ok();
                // It is waited for until each thread has said this.
                let _: Result<(), _> = ready.send(can_see);
                drop(ready);
                if !can_see {
                    return Vec::new();
                }
                let mut is_last = false;
                standstills(iter::from_fn(|| {
                    let time = (!is_last).then(Instant::now)?;
                    is_last = ends.load(Ordering::Relaxed);
                    thread::sleep(EVERY);
                    Some(time)
                }))
            })
        };
        let cores = cores::usable().unwrap_or_default();
        let threads: Vec<_> = cores.into_iter().map(start).collect();
        drop(ready);
        let seeing = is_ready.iter().filter(|can_see| *can_see).count();
        if seeing == 0 || seeing < threads.len() {
            println!(
                "standstills can be seen on {seeing} of this machine's cores only: it refuses the others, or real-time \
                 priority"
            );
        }
        Self { is_over, threads }
    }

    /// Ends it, and returns what it has seen.
    pub fn end(mut self) -> Vec<Standstill> {
        self.is_over.store(true, Ordering::Relaxed);
        let threads = self.threads.drain(..);
        let seen = threads.filter_map(|thread| thread.join().ok());
        merged(seen.flatten().collect())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Returns the standstills among the times at which the thread ran.
fn standstills(times: impl Iterator<Item = Instant>) -> Vec<Standstill> {
    let (mut seen, mut last) = (Vec::new(), None);
    for to in times {
        let from = last.replace(to).unwrap_or(to);
        if to - from > LONG {
            seen.push(Standstill { from, to });
        }
    }
    seen
}

/// Makes one of those that overlap, and puts all in order.
fn merged(mut standstills: Vec<Standstill>) -> Vec<Standstill> {
    standstills.sort_by_key(|still| still.from);
    let mut apart: Vec<Standstill> = Vec::new();
    for still in standstills {
        match apart.last_mut() {
            Some(last) if still.from < last.to => last.to = last.to.max(still.to),
            _ => apart.push(still),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ran_late_has_seen_a_standstill() {
        let begun = Instant::now();
        let times = [0, 20, 520, 1021, 1041].map(|at| begun + Duration::from_millis(at));
        let seen = standstills(times.into_iter());
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!((seen[0].from, seen[0].to), (times[2], times[3]));
    }

    #[test]
    fn standstills_of_cores_that_overlap_are_one() {
        let begun = Instant::now();
        let at = |millis: u64| begun + Duration::from_millis(millis);
        let still = |(from, to): (u64, u64)| Standstill {
            from: at(from),
            to: at(to),
        };
        // Those of a first core, and then of a second one.
        let seen = [(0, 600), (2000, 5000), (7000, 8000)].into_iter();
        let seen = seen.chain([(500, 1100), (3000, 3600), (8000, 8600)]);
        let merged = merged(seen.map(still).collect());
        let merged: Vec<_> = merged.iter().map(|still| (still.from, still.to)).collect();
        let expected = [(0, 1100), (2000, 5000), (7000, 8000), (8000, 8600)];
        assert_eq!(merged, expected.map(|(from, to)| (at(from), at(to))));
    }
}
