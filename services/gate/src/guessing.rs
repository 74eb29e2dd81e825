//! Slows down guessing of keys, by address. Key ids are public: counting by key would let anybody lock a customer out.
//! A valid key is never refused for its address.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;
use water_http::client_address::network;
use water_http::{Buckets, Code, Problem};

/// Wrong keys a second from one address in the long run, and at once.
const PER_SECOND: f64 = 20.0;
const BURST: f64 = 40.0;

/// Addresses with recent guesses. Shared by all workers, locked by guesses only: wrong keys, and texts in a query that
/// could be a key.
#[derive(Debug)]
pub struct Guessing(Buckets<IpAddr>);

impl Default for Guessing {
    fn default() -> Self {
        Self(Buckets::new(PER_SECOND, BURST))
    }
}

impl Guessing {
    /// Returns the refusal unchanged, or 429 for one wrong key too many from this address.
    pub fn slow_down(&self, refusal: Problem, client: IpAddr, now: Instant) -> Problem {
        if refusal.code() != Code::InvalidKey {
            return refusal;
        }
        match self.take(client, now) {
            Ok(()) => refusal,
            Err(wait) => Problem::too_many_failures(wait.as_secs() + 1),
        }
    }

    /// Counts a guess that is not refused, and returns whether it may be answered.
    pub fn allows(&self, client: IpAddr, now: Instant) -> bool {
        self.take(client, now).is_ok()
    }

    /// Counts a guess, or returns the time to wait when the bucket is empty.
    fn take(&self, client: IpAddr, now: Instant) -> Result<(), Duration> {
        self.0.take(network(client), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns for each of these failures, given as milliseconds and address, whether it is slowed down.
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
        for (one, other, is_slowed) in [
            ("192.0.2.1", "192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:2", true),
        ] {
            let failures = [one; 40].into_iter().chain([other]);
            assert_eq!(slowed(failures.map(|client| (0, client)))[40], is_slowed);
        }
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
}
