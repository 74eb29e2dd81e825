//! The limiter's script against a model, on a clock that the test sets: the script's only change is the source of
//! `TIME`.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use redis::{Connection, Script};
use water_harness::Redis;

use super::SOURCE;

const WINDOW: i64 = 60_000_000;
const DAY: i64 = 86_400_000_000;
/// Two minutes before a midnight, so that most runs cross it.
const START: i64 = 20_000 * DAY - 2 * WINDOW;

/// Account on the script, and the clock.
pub(super) struct Account {
    script: Script,
    connection: Connection,
    name: String,
}

#[derive(PartialEq, Eq, Debug)]
struct Reply {
    accepted: bool,
    minute: i64,
    opens: i64,
    day: i64,
    ends: i64,
    /// Milliseconds until each slot opens, rounded up, of a refusal.
    slots: Vec<i64>,
}

impl Account {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let url = runtime.block_on(Redis::shared()).unwrap().url();
        let code = SOURCE.replace("redis.call('TIME')", "{KEYS[3], KEYS[4]}");
        Self {
            script: Script::new(&code),
            connection: redis::Client::open(url).unwrap().get_connection().unwrap(),
            name: format!("script-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// The script's reply at a time in µs.
    pub(super) fn call(&mut self, now: i64, arguments: &[i64]) -> String {
        let mut call = self.script.key(format!("{}:m", self.name));
        call.key(format!("{}:d", self.name));
        // Where the script's own TIME would come from.
        call.key(now / 1_000_000).key(now % 1_000_000);
        call.arg(arguments).invoke(&mut self.connection).unwrap()
    }

    fn charge(&mut self, now: i64, minute: i64, day: i64) -> Reply {
        self.reply(now, &[minute, day])
    }

    /// Charges what a gate owes for a day: so many requests of each age.
    fn owe(&mut self, now: i64, day: i64, moments: &[(i64, i64)]) -> Reply {
        let of_day = moments.iter().map(|(_, requests)| requests).sum();
        let mut arguments = vec![0, 0, day, of_day];
        arguments.extend(moments.iter().flat_map(|(age, requests)| [*age, *requests]));
        self.reply(now, &arguments)
    }

    fn reply(&mut self, now: i64, arguments: &[i64]) -> Reply {
        let reply = self.call(now, arguments);
        let numbers = reply.split(' ').map(|number| number.parse().unwrap());
        let numbers: Vec<i64> = numbers.collect();
        assert_eq!(numbers[1], now);
        Reply {
            accepted: numbers[0] == 1,
            minute: numbers[2],
            opens: numbers[3],
            day: numbers[4],
            ends: numbers[5],
            slots: numbers[6..].to_vec(),
        }
    }

    /// The accepted times in the order in which Redis holds them.
    fn times(&mut self) -> Vec<i64> {
        let mut range = redis::cmd("LRANGE");
        range.arg(format!("{}:m", self.name)).arg(0).arg(-1);
        range.query(&mut self.connection).unwrap()
    }
}

/// Windows as clients are informed of them, a sliding minute and a UTC day, over all accepted times.
#[derive(Default)]
struct Model(Vec<i64>);

impl Model {
    fn charge(&mut self, now: i64, minute: i64, day: i64) -> Reply {
        let in_minute =
            |times: &[i64]| times.iter().filter(|time| **time > now - WINDOW).count() as i64;
        let in_day = |times: &[i64]| {
            times
                .iter()
                .filter(|time| **time / DAY == now / DAY)
                .count() as i64
        };
        let accepted = in_minute(&self.0) < minute && in_day(&self.0) < day;
        if accepted {
            self.0.push(now);
        }
        let used = in_minute(&self.0);
        let before = self.0.len() as i64 - used + (used - minute).max(0);
        let blocking = self.0.iter().skip(before as usize);
        let opens: Vec<i64> = blocking.map(|time| time + WINDOW - now).collect();
        let tells_slots = !accepted && in_day(&self.0) < day;
        let slots: &[i64] = if tells_slots { &opens[..] } else { &[] };
        Reply {
            accepted,
            minute: used,
            opens: opens.first().copied().unwrap_or(0),
            day: in_day(&self.0),
            ends: DAY - now % DAY,
            slots: slots.iter().map(|micros| millis(*micros)).collect(),
        }
    }
}

/// Milliseconds, rounded up.
fn millis(micros: i64) -> i64 {
    (micros + 999) / 1000
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_script_decides_as_the_model_for_any_arrivals_and_plans(
        arrivals in proptest::collection::vec((0..20_000_000i64, 1..6i64, 5..15i64), 1..60),
    ) {
        let (mut account, mut model) = (Account::new(), Model::default());
        let mut now = START;
        for (pause, minute, day) in arrivals {
            now += pause;
            prop_assert_eq!(account.charge(now, minute, day), model.charge(now, minute, day));
        }
    }

    #[test]
    fn who_waits_for_the_slot_is_accepted_and_not_before(
        arrivals in proptest::collection::vec(0..10_000_000i64, 3..20),
    ) {
        let mut account = Account::new();
        let mut now = START - DAY / 2;
        for pause in arrivals {
            now += pause;
            account.charge(now, 3, 1_000);
        }
        let refused = account.charge(now, 3, 1_000);
        if !refused.accepted {
            prop_assert!(!account.charge(now + refused.opens - 1, 3, 1_000).accepted);
            prop_assert!(account.charge(now + refused.opens, 3, 1_000).accepted);
        }
    }

    #[test]
    fn each_slot_is_open_at_its_time_and_not_before_when_those_before_it_are_taken(
        arrivals in proptest::collection::vec(0..10_000_000i64, 10..30),
        used in 5..8i64,
        minute in 1..6i64,
    ) {
        let mut account = Account::new();
        let mut now = START - DAY / 2;
        for pause in arrivals {
            now += pause;
            // A larger plan of the account may have used more than this one allows.
            account.charge(now, used, 1_000);
        }
        let refused = account.charge(now, minute, 1_000);
        prop_assert_eq!(refused.slots.len() as i64, if refused.accepted { 0 } else { minute });
        for slot in refused.slots {
            let opens = now + slot * 1_000;
            prop_assert!(!account.charge(opens - 1_000, minute, 1_000).accepted, "{slot} ms");
            prop_assert!(account.charge(opens, minute, 1_000).accepted, "{slot} ms");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn slots_open_in_the_future_and_times_stay_sorted_whatever_the_clock_and_the_plan_do(
        steps in proptest::collection::vec((-50_000_000..70_000_000i64, 1..6i64), 1..60),
    ) {
        let mut account = Account::new();
        let mut now = START - DAY / 2;
        for (step, minute) in steps {
            now += step;
            let reply = account.charge(now, minute, 1_000);
            let times = account.times();
            prop_assert!(times.is_sorted(), "{times:?}");
            prop_assert!(reply.opens > 0 && reply.opens <= 2 * WINDOW, "{reply:?} at {now} of {times:?}");
            let first = reply.slots.first().copied();
            prop_assert_eq!(first, (!reply.accepted).then(|| millis(reply.opens)));
            let last = reply.slots.last().copied().unwrap_or_default();
            prop_assert!(reply.slots.is_sorted() && last <= millis(2 * WINDOW), "{reply:?}");
        }
    }
}

#[test]
fn a_refusal_tells_120_slots_at_most() {
    let mut account = Account::new();
    for request in 0..130 {
        let accepted = account.charge(START + request * 1_000, 130, 1_000);
        assert!(accepted.slots.is_empty());
    }
    let refused = account.charge(START + 130_000, 130, 1_000);
    assert_eq!(refused.slots, Vec::from_iter(59_870..59_990));
}

#[test]
fn what_is_owed_goes_where_its_times_belong() {
    let mut account = Account::new();
    for seconds in [0, 10, 20, 30] {
        account.charge(START + seconds * 1_000_000, 10, 100);
    }
    let now = START + 40_000_000;
    let moments = [(25_000_000, 2), (5_000_000, 1), (70_000_000, 1)];
    let owed = account.owe(now, now / DAY, &moments);
    assert_eq!((owed.accepted, owed.minute, owed.day), (false, 7, 8));
    let seconds: Vec<_> = account
        .times()
        .iter()
        .map(|time| (time - START) / 1_000_000)
        .collect();
    assert_eq!(seconds, [0, 10, 15, 15, 20, 30, 35]);
    assert!(account.charge(now, 8, 100).accepted);
    assert!(!account.charge(now, 8, 100).accepted);
}

#[test]
fn what_is_owed_for_another_day_counts_in_none() {
    let mut account = Account::new();
    let midnight = START + 2 * WINDOW;
    let owed = account.owe(midnight, midnight / DAY - 1, &[(1_000_000, 2)]);
    assert_eq!((owed.minute, owed.day), (2, 0));
}

#[test]
fn a_clock_set_back_by_more_than_a_window_blocks_nobody_and_by_less_lets_nobody_through() {
    for (back, accepted) in [(WINDOW + 1, true), (WINDOW / 2, false)] {
        let mut account = Account::new();
        for _ in 0..3 {
            account.charge(START, 3, 1_000);
        }
        let reply = account.charge(START - back, 3, 1_000);
        assert_eq!(reply.accepted, accepted, "{back}");
    }
}

#[test]
fn a_clock_set_back_across_midnight_does_not_begin_the_day_again() {
    let midnight = START + 2 * WINDOW;
    let mut account = Account::new();
    assert!(account.charge(midnight, 10, 1).accepted);
    assert!(!account.charge(midnight - 1, 10, 1).accepted);
    assert!(!account.charge(midnight + 1, 10, 1).accepted);
}
