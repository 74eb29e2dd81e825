//! The processors' busy and idle time, sampled from `/proc/stat`. The machine is the run's alone, so
//! that what it does is what the run does.

use std::fs;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::timeline::Timeline;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// The kernel counts in hundredths of a second (`USER_HZ`, fixed for programs on Linux).
const TICKS_A_SECOND: f64 = 100.0;

/// Seconds of all processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub busy: f64,
    pub idle: f64,
}

/// The sums since the machine's start, and the moment of their reading.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    at: Duration,
    sum: Usage,
}

/// A thread that takes samples until it is stopped.
pub struct Processors {
    stop: Sender<()>,
    samples: JoinHandle<Vec<Sample>>,
}

impl Processors {
    /// Starts to sample by the timeline's clock.
    pub fn watch(timeline: Timeline) -> Self {
        let (stop, stopped) = channel();
        let samples = thread::spawn(move || {
            let mut samples = Vec::new();
            loop {
                let text = fs::read_to_string("/proc/stat").unwrap_or_default();
                let at = timeline.elapsed();
                samples.extend(sums(&text).map(|sum| Sample { at, sum }));
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return samples;
                }
            }
        });
        Self { stop, samples }
    }

    /// Ends the sampling and returns all samples.
    pub fn stop(self) -> Vec<Sample> {
        // The thread ends as well once the sender is gone.
        drop(self.stop);
        self.samples.join().unwrap_or_default()
    }
}

/// Returns the time spent between two moments, by the samples next to them.
pub fn usage(samples: &[Sample], begin: Duration, end: Duration) -> Usage {
    let nearest = |moment: Duration| {
        let distance = |sample: &&Sample| sample.at.abs_diff(moment);
        samples.iter().min_by_key(distance)
    };
    let (Some(first), Some(last)) = (nearest(begin), nearest(end)) else {
        return Usage::default();
    };
    Usage {
        busy: last.sum.busy - first.sum.busy,
        idle: last.sum.idle - first.sum.idle,
    }
}

/// Reads the first line of `/proc/stat`: user, nice, system, idle, waiting for disks, interrupts (two kinds)
/// and stolen time; what follows is counted within user and nice.
fn sums(text: &str) -> Option<Usage> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        .take(8)
        .map_while(|number| number.parse().ok())
        .collect();
    let [user, nice, system, idle, disks, rest @ ..] = ticks.as_slice() else {
        return None;
    };
    Some(Usage {
        busy: (user + nice + system + rest.iter().sum::<f64>()) / TICKS_A_SECOND,
        idle: (idle + disks) / TICKS_A_SECOND,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_is_the_difference_of_the_nearest_samples() {
        let sample = |at, line| Sample {
            at: Duration::from_secs(at),
            sum: sums(line).unwrap(),
        };
        let samples = [
            sample(0, "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 1"),
            sample(1, "cpu  250 0 50 110 10 0 0 0 0 0"),
            sample(2, "cpu  900 0 90 900 90 0 0 0 0 0"),
        ];
        let used = usage(&samples, Duration::ZERO, Duration::from_millis(1200));
        assert_eq!((used.busy, (used.idle * 10.0).round()), (2.0, 2.0));
    }
}
