//! Workers of one account that all wait exactly as long as they are told, on a clock that the test sets.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use water_domain::{AccountId, Limits};

use super::latest::Latest;
use super::script::Account;
use super::slots::Reply;

/// Beginning in µs, somewhere in a day.
const START: i64 = 20_000 * 86_400_000_000 + 3_600_000_000;
const SECOND: i64 = 1_000_000;
const PER_MINUTE: u32 = 120;
/// Interval of the requests that have filled the minute, and so of its slots.
const PACE: i64 = 60 * SECOND / PER_MINUTE as i64;
/// Time in which a worker has its answer and asks again.
const ANSWER: i64 = SECOND / 50;

/// Account whose minute is full, and what its gates' workers know of it.
struct World {
    redis: Account,
    account: AccountId,
    latest: Vec<Latest>,
    limits: Limits,
    began: Instant,
}

/// Client that sends one request after the other.
#[derive(Clone, Copy)]
struct Client {
    /// Time of its next attempt in µs.
    at: i64,
    /// Refusals of the request that it is trying to send.
    refusals: usize,
}

impl World {
    /// A world in which the next slot opens [`PACE`] after the time that is returned.
    fn full(gates: usize) -> (Self, i64) {
        let number = |number| NonZeroU32::new(number).unwrap();
        let mut world = Self {
            redis: Account::new(),
            account: "acme".parse().unwrap(),
            latest: (0..gates).map(|_| Latest::new(Arc::default())).collect(),
            limits: Limits {
                requests_per_minute: number(PER_MINUTE),
                requests_per_day: number(50_000),
            },
            began: Instant::now(),
        };
        for request in 0..i64::from(PER_MINUTE) {
            assert_eq!(world.request(0, request * PACE), None);
        }
        (world, i64::from(PER_MINUTE - 1) * PACE)
    }

    /// Asks one gate at a time in µs. Returns the seconds that a refused request is told to wait.
    fn request(&mut self, gate: usize, now: i64) -> Option<u64> {
        let here = self.began + Duration::from_micros(now as u64);
        let (latest, limits) = (&mut self.latest[gate], self.limits);
        let (version, refusal) = latest.look_up(&self.account, limits, here);
        let decision = refusal.unwrap_or_else(|| {
            let arguments = [i64::from(PER_MINUTE), 50_000];
            let text = self.redis.call(START + now, &arguments);
            let reply = Reply::read(&text, limits).unwrap();
            latest.remember(&self.account, limits, reply, here, version)
        });
        decision.retry_after_seconds()
    }
}

/// Sends requests of twelve clients for three minutes, over so many gates. Returns, by the number of refusals before
/// it, how many requests were accepted.
fn accepted_after(gates: usize) -> Vec<usize> {
    let (mut world, begin) = World::full(gates);
    let client = Client {
        at: begin,
        refusals: 0,
    };
    let (mut clients, mut accepted) = ([client; 12], Vec::new());
    loop {
        let next = (0..clients.len()).min_by_key(|number| clients[*number].at);
        let number = next.unwrap();
        let client = &mut clients[number];
        if client.at > begin + 180 * SECOND {
            return accepted;
        }
        if let Some(seconds) = world.request(number % gates, client.at) {
            client.at += seconds as i64 * SECOND;
            client.refusals += 1;
        } else {
            accepted.resize(accepted.len().max(client.refusals + 1), 0);
            accepted[client.refusals] += 1;
            client.at += ANSWER;
            client.refusals = 0;
        }
    }
}

#[test]
fn twelve_clients_that_wait_as_long_as_told_are_accepted_after_one_refusal() {
    let accepted = accepted_after(1);
    assert_eq!((accepted.len(), accepted[0]), (2, 0), "{accepted:?}");
    // All slots are taken: two a second, but for those that open while their clients wait for a whole second.
    assert!(accepted[1] >= 350, "{accepted:?}");
}

#[test]
fn through_two_gates_they_are_accepted_after_three_refusals_at_most() {
    let accepted = accepted_after(2);
    assert!(accepted.len() <= 4, "{accepted:?}");
}
