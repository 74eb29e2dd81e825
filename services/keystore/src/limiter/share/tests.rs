//! Shares on clocks that the test sets.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;

/// Five minutes before a midnight.
const START: i64 = 20_000 * DAY_MILLIS - 300_000;

fn limits(per_minute: u32, per_day: u32) -> Limits {
    let number = |number| NonZeroU32::new(number).unwrap();
    Limits {
        requests_per_minute: number(per_minute),
        requests_per_day: number(per_day),
    }
}

/// Account at one gate, on a clock that the test sets.
struct Gate {
    share: Share,
    began: Instant,
    gates: u32,
}

impl Gate {
    fn one_of(gates: u32) -> Self {
        Self {
            share: Share::default(),
            began: Instant::now(),
            gates,
        }
    }

    fn at(&self, millis: u64) -> Now {
        Now {
            here: self.began + Duration::from_millis(millis),
            redis: Timestamp::from_millis(START + millis as i64).unwrap(),
        }
    }

    fn charge(&mut self, limits: Limits, millis: u64) -> Decision {
        let now = self.at(millis);
        self.share.charge(limits, self.gates, now, true)
    }

    /// Number of `requests` that are admitted at one moment.
    fn admitted(&mut self, requests: usize, limits: Limits, millis: u64) -> usize {
        (0..requests)
            .filter(|_| self.charge(limits, millis).accepted)
            .count()
    }

    /// Takes in the answer of Redis `millis` after the beginning: so many used, the oldest for so long.
    fn hears(&mut self, used: u32, oldest_for: u64, day: u32, millis: u64) {
        let now = self.at(millis);
        let window = |limit, used, opens_in| Window {
            limit,
            remaining: limit - used,
            opens_in,
        };
        let opens_in = WINDOW - Duration::from_millis(oldest_for);
        let decision = Decision {
            accepted: true,
            at: now.redis,
            minute: window(120, used, opens_in),
            day: window(50_000, day, now.until_midnight()),
            slot_opens_in: opens_in,
        };
        let known = CachedDecision::new(decision, limits(120, 50_000), now.here);
        self.share.seed(&known, self.gates, now);
    }
}

#[test]
fn gates_share_the_limits_and_each_may_admit_one_at_least() {
    for (limit, gates, part) in [(120, 1, 120), (120, 3, 40), (120, 7, 17), (2, 5, 1)] {
        let mut gate = Gate::one_of(gates);
        assert_eq!(gate.admitted(200, limits(limit, 50_000), 0), part);
        let mut gate = Gate::one_of(gates);
        assert_eq!(gate.admitted(200, limits(50_000, limit), 0), part);
    }
}

#[test]
fn what_redis_had_counted_is_shared_too() {
    let mut gate = Gate::one_of(3);
    gate.hears(60, 0, 60, 0);
    assert_eq!(gate.admitted(200, limits(120, 50_000), 0), 20);
    let mut gate = Gate::one_of(3);
    gate.hears(120, 0, 120, 0);
    assert_eq!(gate.admitted(200, limits(120, 50_000), 59_999), 0);
    assert_eq!(gate.admitted(200, limits(120, 50_000), 60_000), 40);
}

#[test]
fn a_client_that_keeps_its_pace_is_not_refused() {
    let mut gate = Gate::one_of(1);
    // 100 a minute for more than a minute.
    gate.hears(100, 59_400, 5_000, 0);
    for request in 1..1_000 {
        let decision = gate.charge(limits(120, 50_000), request * 600);
        assert!(decision.accepted, "{request} {decision:?}");
    }
}

#[test]
fn a_later_word_of_redis_replaces_the_earlier_one() {
    let mut gate = Gate::one_of(1);
    gate.hears(100, 0, 100, 0);
    gate.hears(10, 0, 10, 1_000);
    gate.hears(100, 0, 100, 500);
    assert_eq!(gate.admitted(200, limits(120, 50_000), 1_000), 110);
}

#[test]
fn the_day_begins_at_midnight_of_redis() {
    let mut gate = Gate::one_of(2);
    gate.hears(0, 0, 49_996, 0);
    let plan = limits(120, 50_000);
    assert_eq!(gate.admitted(10, plan, 1), 2);
    assert!(!gate.charge(plan, 299_999).accepted);
    assert_eq!(gate.admitted(10, plan, 300_000), 10);
}

#[test]
fn a_debt_is_what_was_admitted_and_may_be_owed_again() {
    let mut gate = Gate::one_of(1);
    let plan = limits(5, 100);
    gate.admitted(3, plan, 0);
    gate.admitted(9, plan, 10_000);
    let now = gate.at(11_000).here;
    let uncharged = gate.share.settle(now).unwrap();
    let told = |uncharged: &UnchargedRequests| {
        (uncharged.of_day, uncharged.slots(now).collect::<Vec<_>>())
    };
    assert_eq!(told(&uncharged), (5, vec![(11_000_000, 3), (1_000_000, 2)]));
    assert_eq!(gate.share.settle(now), None);
    assert!(!gate.charge(plan, 12_000).accepted, "it stays used");

    gate.share.owe(uncharged.clone());
    assert_eq!(gate.share.settle(now), Some(uncharged));
}

#[test]
fn what_may_be_charged_already_is_not_owed_and_counts_in_the_minute_and_the_day() {
    for limits in [limits(1, 9), limits(9, 1)] {
        let mut gate = Gate::one_of(1);
        let now = gate.at(0);
        assert!(gate.share.charge(limits, 1, now, false).accepted);
        assert!(!gate.charge(limits, 1).accepted);
        assert_eq!(gate.share.settle(now.here), None);
    }
}

#[test]
fn of_the_last_day_only_the_count_is_owed() {
    let mut gate = Gate::one_of(1);
    gate.admitted(3, limits(5, 100), 0);
    let uncharged = gate.share.settle(gate.at(60_000).here).unwrap();
    assert_eq!((uncharged.of_day, uncharged.slots.len()), (3, 0));
    assert!(gate.share.is_over(gate.at(60_000).here));
}

#[test]
fn memory_is_bounded_whatever_the_limit() {
    let mut gate = Gate::one_of(1);
    let plan = limits(1_000_000, 1_000_000);
    for request in 0..70_000 {
        gate.charge(plan, request);
    }
    assert!(gate.share.used.len() <= 242, "{}", gate.share.used.len());
}

proptest! {
    #[test]
    fn no_sixty_seconds_hold_more_than_the_part(
        pauses in proptest::collection::vec(0..3_000u64, 1..200),
        limit in 1..20u32,
        gates in 1..5u32,
        used in 0..20u32,
    ) {
        let mut gate = Gate::one_of(gates);
        gate.hears(used, 30_000, used, 0);
        let (mut now, mut accepted) = (0, Vec::new());
        for pause in pauses {
            now += pause;
            if gate.charge(limits(limit, 50_000), now).accepted {
                accepted.push(now);
            }
        }
        let part = part(limit, gates) as usize;
        for slice in accepted.windows(part + 1) {
            prop_assert!(slice[part] - slice[0] >= 60_000, "{:?}", slice);
        }
    }

    #[test]
    fn who_waits_as_long_as_told_is_admitted(
        pauses in proptest::collection::vec(0..3_000u64, 1..100),
        used in 0..30u32,
        oldest in 0..60_000u64,
    ) {
        let mut gate = Gate::one_of(2);
        gate.hears(used, oldest, used, 0);
        let (plan, mut now) = (limits(16, 50_000), 0);
        for pause in pauses {
            now += pause;
            let decision = gate.charge(plan, now);
            if let Some(seconds) = decision.retry_after_seconds() {
                prop_assert!(seconds <= 60, "{}", seconds);
                now += seconds * 1_000;
                prop_assert!(gate.charge(plan, now).accepted);
            }
        }
    }

    #[test]
    fn a_refusal_lowers_nothing(
        pauses in proptest::collection::vec(0..2_000u64, 1..60),
    ) {
        let mut gate = Gate::one_of(3);
        let mut now = 0;
        for pause in pauses {
            now += pause;
            let first = gate.charge(limits(12, 50_000), now);
            if !first.accepted {
                prop_assert_eq!(gate.charge(limits(12, 50_000), now), first);
            }
        }
    }
}
