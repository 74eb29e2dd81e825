//! Slows down guessing of keys, by address. Key ids are public: counting by key would let anybody
//! lock a customer out. A good key is never refused for its address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use water_http::{Code, Problem};

/// Wrong keys a second from one address in the long run, and at once (gate.md, "The connection").
const PER_SECOND: f64 = 20.0;
const BURST: f64 = 40.0;
/// Addresses remembered; at some 100 bytes each this bounds the memory to 1 MB.
const CAPACITY: usize = 10_000;

/// The addresses that guessed of late. Shared by all workers, touched by guesses only: wrong keys,
/// and what could be a key in a query.
#[derive(Debug, Default)]
pub struct Guessing(Mutex<HashMap<IpAddr, Bucket>>);

/// How many more guesses an address has, as of a moment; it fills up with time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn at(self, now: Instant) -> f64 {
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * PER_SECOND;
        (self.left + grown).min(BURST)
    }
}

impl Guessing {
    /// The refusal as it is, or 429 where it is one wrong key too many from this address.
    pub fn slow_down(&self, refusal: Problem, client: IpAddr, now: Instant) -> Problem {
        if refusal.code() != Code::InvalidKey {
            return refusal;
        }
        match self.take(client, now) {
            Ok(()) => refusal,
            Err(wait) => Problem::too_many_failures(wait.as_secs() + 1),
        }
    }

    /// Counts a guess that is not refused; whether it may be answered.
    pub fn allows(&self, client: IpAddr, now: Instant) -> bool {
        self.take(client, now).is_ok()
    }

    /// Counts a guess, or answers how long to wait when the bucket is empty.
    fn take(&self, client: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.lock();
        if buckets.len() >= CAPACITY {
            buckets.retain(|_, bucket| bucket.at(now) < BURST);
        }
        // Still full: forgetting lets some guess on, and costs nobody else anything.
        if buckets.len() >= CAPACITY {
            buckets.clear();
        }
        let full = Bucket {
            left: BURST,
            at: now,
        };
        let bucket = buckets.entry(network(client)).or_insert(full);
        let left = bucket.at(now);
        if left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - left) / PER_SECOND));
        }
        *bucket = Bucket {
            left: left - 1.0,
            at: now,
        };
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Bucket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One customer has a whole /64 of IPv6.
fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these failures, given as milliseconds and address, are slowed down.
    fn slowed(failures: impl IntoIterator<Item = (u64, &'static str)>) -> Vec<bool> {
        let (guessing, begin) = (Guessing::default(), Instant::now());
        let slowed = |(millis, client): (u64, &str)| {
            let now = begin + Duration::from_millis(millis);
            let refusal = guessing.slow_down(Problem::invalid_key(), client.parse().unwrap(), now);
            refusal.code() == Code::RateLimited
        };
        failures.into_iter().map(slowed).collect()
    }

    #[test]
    fn forty_failures_at_once_pass_and_then_twenty_a_second() {
        let at_once = slowed((0..50).map(|_| (0, "192.0.2.1")));
        assert_eq!(at_once.iter().filter(|slowed| **slowed).count(), 10);
        let steady = slowed((0..200).map(|number| (number * 50, "192.0.2.1")));
        assert!(!steady.contains(&true));
    }

    #[test]
    fn addresses_are_counted_apart_and_a_64_of_ipv6_together() {
        let others = slowed((0..41).map(|number| {
            (
                0,
                if number < 40 {
                    "192.0.2.1"
                } else {
                    "192.0.2.2"
                },
            )
        }));
        assert!(!others.contains(&true));
        let one = |number| {
            if number < 40 {
                "2001:db8::1"
            } else {
                "2001:db8::ffff:2"
            }
        };
        assert!(slowed((0..41).map(|number| (0, one(number))))[40]);
    }

    #[test]
    fn only_wrong_keys_count() {
        let (guessing, now) = (Guessing::default(), Instant::now());
        let client = "192.0.2.1".parse().unwrap();
        for _ in 0..100 {
            let refusal = guessing.slow_down(Problem::missing_credentials(), client, now);
            assert_eq!(refusal.code(), Code::MissingCredentials);
        }
    }

    #[test]
    fn memory_is_bounded_whatever_the_number_of_addresses() {
        let (guessing, now) = (Guessing::default(), Instant::now());
        for number in 0..=CAPACITY as u32 {
            let client = IpAddr::from(number.to_be_bytes());
            assert_eq!(guessing.take(client, now), Ok(()));
        }
        assert!(guessing.lock().len() <= CAPACITY);
    }
}
