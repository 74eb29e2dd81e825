//! Load beside a test run, on request: what a machine that others use does to the tests.

use std::hint::spin_loop;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use water_harness::cores;

/// Pause between two standstills of the machine.
const PAUSE: Duration = Duration::from_secs(115);
/// Length of a standstill. The kernel leaves a twentieth of each second to ordinary threads.
const STANDSTILL: Duration = Duration::from_secs(5);
/// Priority among real-time threads: above that of the threads with which the tests of loads see a standstill.
const PRIORITY: u8 = 50;

/// The load: a thread that is always busy, and one for each core that comes before all others for five seconds every two
/// minutes. All end when this is dropped, or with the process.
pub struct Stress {
    /// Nothing is sent: the threads see that it is gone.
    _running: Vec<Sender<()>>,
}

impl Stress {
    /// Starts it, and fails where the machine refuses the priority.
    pub fn start() -> Result<Self> {
        let (busy, is_over) = channel();
        thread::spawn(move || while !has_ended(&is_over, Duration::ZERO) {});
        let mut running = vec![busy];
        for core in cores::usable()? {
            let (ready, is_ready) = channel();
            let (sender, is_over) = channel();
            thread::spawn(move || {
                let prepared = cores::take(core, PRIORITY);
                let can_run = prepared.is_ok();
                // It is waited for below.
                let _: Result<(), _> = ready.send(prepared);
                while can_run && !has_ended(&is_over, PAUSE) {
                    stand_still();
                }
            });
            let prepared = is_ready.recv().context("the thread has ended")?;
            prepared.context("this machine cannot be put under stress")?;
            running.push(sender);
        }
        Ok(Self { _running: running })
    }
}

/// Keeps this thread's core busy for so long by the thread's own clock, whatever becomes of the run.
#[expect(
    clippy::disallowed_methods,
    reason = "the load has a length, and no test's outcome depends on it"
)]
fn stand_still() {
    let begun = Instant::now();
    while begun.elapsed() < STANDSTILL {
        spin_loop();
    }
}

/// Whether the other end is gone, after at most so long.
fn has_ended(running: &Receiver<()>, within: Duration) -> bool {
    running.recv_timeout(within) == Err(RecvTimeoutError::Disconnected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_on_until_its_load_is_dropped() {
        let (running, is_over) = channel();
        assert!(!has_ended(&is_over, Duration::ZERO));
        drop(running);
        assert!(has_ended(&is_over, PAUSE));
    }
}
