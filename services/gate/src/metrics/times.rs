//! Histograms of durations.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{MetricEncoder, NoLabelSet};

/// Bound of the shortest bucket: the fastest refusal. Each further bound is twice the one before, up to 6.5 s, beyond
/// the longest deadline; longer times count in a last bucket without a bound.
const SHORTEST: Duration = Duration::from_micros(50);
const BOUNDS: usize = 18;

/// A histogram of seconds.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Times {
    buckets: [u64; BOUNDS + 1],
    sum: Duration,
}

impl Times {
    pub(super) fn observe(&mut self, time: Duration) {
        let bucket = (0..BOUNDS).find(|bucket| time <= SHORTEST * (1 << bucket));
        self.buckets[bucket.unwrap_or(BOUNDS)] += 1;
        self.sum += time;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (bucket, count) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += count;
        }
        self.sum += other.sum;
    }

    pub(super) fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let bound = |bucket| match bucket {
            BOUNDS => f64::MAX,
            bucket => (SHORTEST * (1 << bucket)).as_secs_f64(),
        };
        let buckets: Vec<(f64, u64)> = (0..=BOUNDS).map(bound).zip(self.buckets).collect();
        let count = self.buckets.iter().sum();
        encoder.encode_histogram::<NoLabelSet>(self.sum.as_secs_f64(), count, &buckets, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_in_the_first_bucket_that_is_not_shorter() {
        let mut times = Times::default();
        for micros in [0, 50, 51, 100, 6_553_600, 6_553_601] {
            times.observe(Duration::from_micros(micros));
        }
        assert_eq!(times.buckets[..3], [2, 2, 0]);
        assert_eq!(times.buckets[BOUNDS - 1..], [1, 1]);
    }

    #[test]
    fn added_up_are_counts_and_sums() {
        let mut times = Times::default();
        times.observe(Duration::from_micros(10));
        let other = times;
        times.add(&other);
        assert_eq!(
            (times.buckets[0], times.sum),
            (2, Duration::from_micros(20))
        );
    }
}
