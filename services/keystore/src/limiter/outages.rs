//! Several gates, through outages of Redis and back: what they remember, their shares, and the
//! script on a clock that the test sets.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;
use water_domain::{AccountId, Limits, Timestamp};

use super::decision::Decision;
use super::latest::Latest;
use super::script::Account;
use super::share::{Now, Share};
use super::slots::Reply;

/// Beginning in µs, somewhere in a day.
const START: i64 = 20_000 * 86_400_000_000 + 3_600_000_000;

/// View of the account at one gate.
struct Gate {
    share: Share,
    latest: Latest,
}

/// Account, its Redis and all gates.
struct World {
    redis: Account,
    account: AccountId,
    gates: Vec<Gate>,
    limits: Limits,
    began: Instant,
    /// µs since `began`.
    now: i64,
    away: bool,
    /// Time at which each request was admitted, and whether Redis decided it.
    admitted: Vec<(i64, bool)>,
}

impl World {
    fn new(gates: usize, limit: u32) -> Self {
        Self {
            redis: Account::new(),
            account: "acme".parse().unwrap(),
            gates: (0..gates)
                .map(|_| Gate {
                    share: Share::default(),
                    latest: Latest::new(Arc::default()),
                })
                .collect(),
            limits: Limits {
                requests_per_minute: NonZeroU32::new(limit).unwrap(),
                requests_per_day: NonZeroU32::new(50_000).unwrap(),
            },
            began: Instant::now(),
            now: 0,
            away: false,
            admitted: Vec::new(),
        }
    }

    fn both_clocks(&self) -> Now {
        Now {
            here: self.began + Duration::from_micros(self.now as u64),
            redis: Timestamp::from_millis((START + self.now) / 1000).unwrap(),
        }
    }

    fn request(&mut self, gate: usize) {
        let here = self.both_clocks().here;
        let gate = gate % self.gates.len();
        let (version, refusal) = self.gates[gate]
            .latest
            .look_up(&self.account, self.limits, here);
        if refusal.is_some() {
            return;
        }
        let decision = if self.away {
            self.ask_the_share(gate)
        } else {
            self.ask_redis(gate, version)
        };
        if decision.accepted {
            self.admitted.push((self.now, !self.away));
        }
    }

    fn ask_redis(&mut self, gate: usize, version: u64) -> Decision {
        let (here, limits) = (self.both_clocks().here, self.limits);
        let minute = limits.requests_per_minute.get().into();
        let day = limits.requests_per_day.get().into();
        let reply = self.redis.call(START + self.now, &[minute, day]);
        let reply = Reply::read(&reply, limits).unwrap();
        self.gates[gate]
            .latest
            .remember(&self.account, limits, reply, here, version)
    }

    fn ask_the_share(&mut self, gate: usize) -> Decision {
        let (now, gates) = (self.both_clocks(), self.gates.len() as u32);
        let Gate { share, latest } = &mut self.gates[gate];
        if let Some(known) = latest.get(&self.account) {
            share.seed(known, gates, now);
        }
        share.charge(self.limits, gates, now, true)
    }

    /// Takes Redis away, or brings it back: every gate then charges what it owes.
    fn turn(&mut self) {
        self.away = !self.away;
        if self.away {
            return;
        }
        let here = self.both_clocks().here;
        for gate in 0..self.gates.len() {
            let Some(uncharged) = self.gates[gate].share.settle(here) else {
                continue;
            };
            let mut arguments = vec![0, 0, uncharged.day, uncharged.of_day.into()];
            for (age, requests) in uncharged.slots(here) {
                arguments.extend([age as i64, requests.into()]);
            }
            self.redis.call(START + self.now, &arguments);
        }
    }

    /// Largest number of requests in a minute that ends with one of the chosen requests.
    fn most_in_a_minute(&self, chosen: impl Fn(bool) -> bool) -> usize {
        let ends = self.admitted.iter().filter(|(_, exact)| chosen(*exact));
        let within = |end: i64| {
            let in_minute = |(time, _): &&(i64, bool)| (end - 60_000_000 + 1..=end).contains(time);
            self.admitted.iter().filter(in_minute).count()
        };
        ends.map(|(end, _)| within(*end)).max().unwrap_or_default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_sixty_seconds_hold_more_than_the_limit_whatever_the_number_of_gates(
        gates in proptest::sample::select(vec![1usize, 2, 5]),
        arrivals in proptest::collection::vec((0..4_000_000i64, 0..5usize), 1..150),
        limit in 1..9u32,
    ) {
        let mut world = World::new(gates, limit);
        for (pause, gate) in arrivals {
            world.now += pause;
            world.request(gate);
        }
        let most = world.most_in_a_minute(|_| true);
        prop_assert!(most <= limit as usize, "{most} within a minute");
    }

    #[test]
    fn three_gates_through_any_outages_stay_within_twice_the_limit_and_exact_once_redis_is_back(
        steps in proptest::collection::vec(
            (0..4_000_000i64, 0..3usize, 1..6usize, proptest::bool::weighted(0.15)),
            1..80,
        ),
        limit in 1..13u32,
    ) {
        let mut world = World::new(3, limit);
        for (pause, gate, requests, turns) in steps {
            world.now += pause;
            if turns {
                world.turn();
            }
            for _ in 0..requests {
                world.request(gate);
            }
        }
        let limit = limit as usize;
        let any = world.most_in_a_minute(|_| true);
        prop_assert!(any <= limit + limit.max(3), "{any} within a minute");
        let exact = world.most_in_a_minute(|exact| exact);
        prop_assert!(exact <= limit, "Redis admitted the {exact}th within a minute");
    }
}
