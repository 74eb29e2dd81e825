//! Token buckets, one for each key, which refill with time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Largest number of buckets; at some 100 bytes each this bounds the memory to 1 MB.
const CAPACITY: usize = 10_000;

/// Buckets that are not full, in the memory of the process.
#[derive(Debug)]
pub struct Buckets<K> {
    per_second: f64,
    burst: f64,
    held: Mutex<HashMap<K, Bucket>>,
}

/// Tokens left at a moment.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Eq + Hash> Buckets<K> {
    /// Makes buckets that refill `per_second` and hold at most `burst` tokens.
    pub fn new(per_second: f64, burst: f64) -> Self {
        Self {
            per_second,
            burst,
            held: Mutex::default(),
        }
    }

    /// Takes a token of `key`, or returns the time to wait when its bucket is empty.
    pub fn take(&self, key: K, now: Instant) -> Result<(), Duration> {
        let mut held = self.lock();
        if held.len() >= CAPACITY {
            held.retain(|_, bucket| self.left(bucket, now) < self.burst);
        }
        // Still full: forgetting all lets some requests pass, and delays nobody.
        if held.len() >= CAPACITY {
            held.clear();
        }
        let full = Bucket {
            left: self.burst,
            at: now,
        };
        let bucket = held.entry(key).or_insert(full);
        let left = self.left(bucket, now);
        if left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - left) / self.per_second));
        }
        *bucket = Bucket {
            left: left - 1.0,
            at: now,
        };
        Ok(())
    }

    fn left(&self, bucket: &Bucket, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + elapsed * self.per_second).min(self.burst)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Bucket>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_at_once_and_fills_with_time() {
        let (buckets, begin) = (Buckets::new(20.0, 40.0), Instant::now());
        let taken = |millis| {
            buckets
                .take("a", begin + Duration::from_millis(millis))
                .is_ok()
        };
        assert_eq!((0..50).filter(|_| taken(0)).count(), 40);
        assert!(!taken(40) && taken(60));
        let wait = buckets
            .take("a", begin + Duration::from_millis(60))
            .unwrap_err();
        assert!(wait <= Duration::from_millis(50), "{wait:?}");
    }

    #[test]
    fn memory_is_bounded_whatever_the_number_of_keys() {
        let (buckets, now) = (Buckets::new(20.0, 40.0), Instant::now());
        for key in 0..=CAPACITY {
            assert_eq!(buckets.take(key, now), Ok(()));
        }
        assert!(buckets.lock().len() <= CAPACITY);
    }
}
