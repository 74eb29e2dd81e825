//! A thread that needs next to nothing and comes before all ordinary ones: it is late where a core stands still, such
//! as one that a virtual machine's host does not let run.

use std::iter;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::unistd::gettid;
use tokio::time::Instant;

/// Interval at which it runs.
const EVERY: Duration = Duration::from_millis(20);
/// Shortest standstill that is recorded: five attempts of a gate to connect to a service would have passed.
const LONG: Duration = Duration::from_millis(500);
/// Its priority among real-time threads, the lowest but nine, which every ordinary thread is below.
const PRIORITY: &str = "10";

/// A time in which nothing ran.
#[derive(Clone, Copy, Debug)]
pub struct Standstill {
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
}

/// The running thread, which ends when this is dropped.
pub struct Witness {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Standstill>>>,
}

impl Witness {
    /// Starts it. On a machine that refuses its priority it sees nothing, so that no failure is excused.
    pub fn start() -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let (ends, (ready, is_ready)) = (Arc::clone(&is_over), mpsc::channel());
        let thread = thread::spawn(move || {
            let has_priority = has_priority();
            drop(ready);
            if !has_priority {
                println!(
                    "no standstill of this machine can be seen: it refuses real-time priority"
                );
                return Vec::new();
            }
            let mut is_last = false;
            standstills(iter::from_fn(|| {
                let time = (!is_last).then(Instant::now)?;
                is_last = ends.load(Ordering::Relaxed);
                thread::sleep(EVERY);
                Some(time)
            }))
        });
        // Nothing is sent: it ends when the thread has its priority.
        let _: Result<(), _> = is_ready.recv();
        Self {
            is_over,
            thread: Some(thread),
        }
    }

    /// Ends it, and returns what it has seen.
    pub fn end(mut self) -> Vec<Standstill> {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Gives this thread its priority, if the machine allows it.
fn has_priority() -> bool {
    let mut command = Command::new("chrt");
    command.args(["--fifo", "--pid", PRIORITY, &gettid().to_string()]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
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
}
