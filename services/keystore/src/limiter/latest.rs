//! Last decision of Redis for each account: a refusal holds without asking again, until its slot opens or a key or plan
//! changes; and a gate that cannot ask continues from the last decision.

use std::mem::swap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use tokio::time::Instant;
use water_domain::{AccountId, Limits};

use super::decision::Decision;
use super::slots::{Reply, Slots};

/// Accounts remembered at once; at about 350 bytes each, and 240 for the slots of a refusal, this bounds the memory to
/// some 6 MB. Of more active ones those asked about longest ago are forgotten, which costs a question to Redis.
const CAPACITY: usize = 10_000;

/// Memory of one worker of decisions, in two halves: a full one replaces the other.
#[derive(Debug)]
pub(super) struct Latest {
    young: HashMap<AccountId, Entry>,
    old: HashMap<AccountId, Entry>,
    changes: Arc<AtomicU64>,
}

/// Memory of one account.
#[derive(Debug)]
struct Entry {
    known: CachedDecision,
    slots: Slots,
}

/// A decision of Redis.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedDecision {
    pub(super) decision: Decision,
    /// Time before the script ran, so that a slot is never taken for closed when it is open.
    pub(super) asked: Instant,
    limits: Limits,
    /// `changes` when it was asked.
    version: u64,
}

impl Latest {
    pub(super) fn new(changes: Arc<AtomicU64>) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            changes,
        }
    }

    /// The last decision about this account, whatever its age.
    pub(super) fn get(&self, account: &AccountId) -> Option<&CachedDecision> {
        let entry = self.young.get(account).or_else(|| self.old.get(account));
        entry.map(|entry| &entry.known)
    }

    /// The refusal of this account under these limits, if it still holds at `now`, with the slot of this request.
    /// Without one Redis is asked, and the number is given back with its decision: a change of a key or plan while the
    /// answer is under way may make a refusal obsolete, and the number shows that.
    pub(super) fn look_up(
        &mut self,
        account: &AccountId,
        limits: Limits,
        now: Instant,
    ) -> (u64, Option<Decision>) {
        let version = self.changes.load(Ordering::Acquire);
        let entry = match self.young.get_mut(account) {
            Some(entry) => Some(entry),
            None => self.old.get_mut(account),
        };
        let refusal = entry.and_then(|entry| entry.refuse_again(limits, version, now));
        (version, refusal)
    }

    /// Notes a reply, with the moment and the number from before it was asked for. Returns its decision, a refusal with
    /// the slot of this request.
    pub(super) fn remember(
        &mut self,
        account: &AccountId,
        limits: Limits,
        reply: Reply,
        asked: Instant,
        version: u64,
    ) -> Decision {
        let Reply { decision, slots } = reply;
        let known = CachedDecision {
            decision,
            asked,
            limits,
            version,
        };
        let mut entry = Entry { known, slots };
        if let Some(earlier) = self.young.get_mut(account) {
            let decision = entry.follow(earlier);
            *earlier = entry;
            return decision;
        }
        let decision = match self.old.get(account) {
            Some(earlier) => entry.follow(earlier),
            None => entry.assign(decision, asked),
        };
        if self.young.len() >= CAPACITY / 2 {
            swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(account.clone(), entry);
        decision
    }
}

impl Entry {
    /// The refusal, if it holds under these limits, after these changes and at `now`.
    fn refuse_again(&mut self, limits: Limits, version: u64, now: Instant) -> Option<Decision> {
        let holds = self.known.version == version && self.known.limits == limits;
        if !holds {
            return None;
        }
        let refusal = self.known.still_refused(now)?;
        Some(self.assign(refusal, now))
    }

    /// The decision with its slot, which comes after those that the earlier refusals have told. Another plan has other
    /// slots.
    fn follow(&mut self, earlier: &Self) -> Decision {
        let CachedDecision {
            decision,
            asked,
            limits,
            ..
        } = self.known;
        if earlier.known.limits == limits {
            self.slots.follow(&earlier.slots, asked);
        }
        self.assign(decision, asked)
    }

    fn assign(&mut self, decision: Decision, now: Instant) -> Decision {
        self.slots.assign(decision, self.known.asked, now)
    }
}

impl CachedDecision {
    #[cfg(test)]
    pub(super) fn new(decision: Decision, limits: Limits, asked: Instant) -> Self {
        Self {
            decision,
            asked,
            limits,
            version: 0,
        }
    }

    /// The refusal as it is at `now`; `None` when its slot is open, or it was no refusal. A day's refusal ends with the
    /// next slot of the minute too: what remains of the minute is reported as well.
    fn still_refused(&self, now: Instant) -> Option<Decision> {
        let elapsed = now.saturating_duration_since(self.asked);
        let minute = self.decision.minute.opens_in;
        let changes = [self.decision.retry_after()?, minute];
        let first = changes.into_iter().filter(|wait| !wait.is_zero()).min()?;
        (elapsed < first).then(|| self.decision.later(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use super::*;

    fn limits(per_minute: u32) -> Limits {
        Limits {
            requests_per_minute: NonZeroU32::new(per_minute).unwrap(),
            requests_per_day: NonZeroU32::new(1000).unwrap(),
        }
    }

    fn reply(text: &str) -> Reply {
        Reply::read(text, limits(3)).unwrap()
    }

    /// A refusal under 3 a minute, with slots that open in 30, 40 and 50 s.
    fn refusal() -> Reply {
        reply("0 0 3 30000000 3 1 30000 40000 50000")
    }

    struct LatestFixture {
        latest: Latest,
        changes: Arc<AtomicU64>,
        at: Instant,
    }

    fn asked(version: u64, current: u64) -> LatestFixture {
        let changes = Arc::new(AtomicU64::new(current));
        let mut latest = Latest::new(changes.clone());
        let at = Instant::now();
        let account = "acme".parse().unwrap();
        latest.remember(&account, limits(3), refusal(), at, version);
        LatestFixture {
            latest,
            changes,
            at,
        }
    }

    impl LatestFixture {
        fn again(&mut self, limits: Limits, after: Duration) -> Option<Decision> {
            let account = "acme".parse().unwrap();
            self.latest.look_up(&account, limits, self.at + after).1
        }

        /// The decision of a reply so long after the first one.
        fn hears(&mut self, text: &str, limits: Limits, after: Duration) -> Decision {
            let account = "acme".parse().unwrap();
            let (reply, at) = (reply(text), self.at + after);
            self.latest.remember(&account, limits, reply, at, 0)
        }

        /// Seconds that the next refusals under 3 a minute are told, so long after the first one.
        fn next(&mut self, count: usize, after: Duration) -> Vec<u64> {
            let refusals = (0..count).map(|_| self.again(limits(3), after).unwrap());
            let waits = refusals.map(|refusal| refusal.retry_after_seconds().unwrap());
            waits.collect()
        }
    }

    #[test]
    fn a_refusal_holds_until_its_slot_opens() {
        let mut asked = asked(0, 0);
        let later = asked
            .again(limits(3), Duration::from_millis(29_999))
            .unwrap();
        assert_eq!(later.minute.opens_in_seconds(), 1);
        assert_eq!(asked.again(limits(3), Duration::from_secs(30)), None);
    }

    #[test]
    fn each_refusal_is_told_the_next_slot_and_after_the_last_the_first_again() {
        let mut asked = asked(0, 0);
        // The reply itself was told the first.
        let second = Duration::from_secs(1);
        assert_eq!(asked.next(4, second), [39, 49, 29, 39]);
        let refusal = asked.again(limits(3), second).unwrap();
        assert_eq!(refusal.minute.opens_in_seconds(), 29);
    }

    #[test]
    fn the_reply_of_redis_is_told_a_slot_too() {
        let mut asked = asked(0, 0);
        let text = "0 0 3 30000000 3 1 30000 40000 50000";
        let waits = [(); 3].map(|()| {
            let refusal = asked.hears(text, limits(3), Duration::ZERO);
            refusal.retry_after_seconds().unwrap()
        });
        assert_eq!(waits, [40, 50, 30]);
    }

    #[test]
    fn a_later_refusal_continues_after_the_slots_that_were_told() {
        let mut asked = asked(0, 0);
        assert_eq!(asked.next(1, Duration::ZERO), [40]);
        // The first slot was taken; the others seem to open a little later than the first reply said.
        let after = Duration::from_secs(30);
        asked.hears("1 0 3 10000000 4 1", limits(3), after);
        let text = "0 0 3 10001000 4 1 10001 20001 60000";
        let refusal = asked.hears(text, limits(3), after);
        assert_eq!(refusal.retry_after_seconds(), Some(21));
        assert_eq!(asked.next(3, after), [60, 11, 21]);
    }

    #[test]
    fn the_first_slot_is_told_once_all_that_were_told_are_over() {
        let mut asked = asked(0, 0);
        assert_eq!(asked.next(2, Duration::ZERO), [40, 50]);
        let after = Duration::from_secs(51);
        let refusal = asked.hears("0 0 3 5000000 3 1 5000 6000 7000", limits(3), after);
        assert_eq!(refusal.retry_after_seconds(), Some(5));
    }

    #[test]
    fn what_was_told_is_remembered_for_as_long_as_the_account_is() {
        let mut asked = asked(0, 0);
        // The account's memory is now the older half.
        swap(&mut asked.latest.young, &mut asked.latest.old);
        assert_eq!(asked.next(1, Duration::ZERO), [40]);
        let text = "0 0 3 30000000 3 1 30000 40000 50000";
        let refusal = asked.hears(text, limits(3), Duration::ZERO);
        assert_eq!(refusal.retry_after_seconds(), Some(50));
    }

    #[test]
    fn a_refusal_under_another_plan_is_told_its_first_slot() {
        let mut asked = asked(0, 0);
        assert_eq!(asked.next(1, Duration::ZERO), [40]);
        let text = "0 0 3 20000000 3 1 20000 30000 40000";
        let refusal = asked.hears(text, limits(2), Duration::ZERO);
        assert_eq!(refusal.retry_after_seconds(), Some(20));
    }

    #[test]
    fn a_days_refusals_are_all_told_the_end_of_the_day() {
        let mut asked = asked(0, 0);
        let text = "0 0 3 30000000 1000 9000000000";
        let waits = [(); 3].map(|()| {
            let refusal = asked.hears(text, limits(3), Duration::ZERO);
            refusal.retry_after_seconds().unwrap()
        });
        assert_eq!(waits, [9000; 3]);
        assert_eq!(asked.next(2, Duration::ZERO), [9000; 2]);
    }

    #[test]
    fn a_days_refusal_is_asked_for_again_when_the_minute_changes() {
        let again = |minute_opens, after| {
            let reply = format!("0 0 1 {minute_opens} 1000 9000000000");
            let decision = Decision::read(&reply, limits(3)).unwrap();
            let asked = Instant::now();
            CachedDecision::new(decision, limits(3), asked).still_refused(asked + after)
        };
        let held = again(30_000_000, Duration::from_millis(29_999)).unwrap();
        assert_eq!((held.minute.remaining, held.day.remaining), (2, 0));
        assert_eq!(again(30_000_000, Duration::from_secs(30)), None);
        assert!(again(0, Duration::from_secs(300)).is_some());
    }

    #[test]
    fn a_refusal_says_nothing_about_other_limits() {
        assert_eq!(asked(0, 0).again(limits(4), Duration::ZERO), None);
    }

    #[test]
    fn any_change_of_a_key_or_plan_ends_refusals() {
        let mut asked = asked(0, 0);
        asked.changes.fetch_add(1, Ordering::Release);
        assert_eq!(asked.again(limits(3), Duration::ZERO), None);
    }

    #[test]
    fn a_refusal_asked_for_before_a_change_does_not_hold_after_it() {
        assert_eq!(asked(0, 1).again(limits(3), Duration::ZERO), None);
    }

    #[test]
    fn an_acceptance_is_known_and_refuses_nothing() {
        let mut asked = asked(0, 0);
        let account = "acme".parse().unwrap();
        let accepted = asked.hears("1 0 1 60000000 1 1", limits(3), Duration::ZERO);
        assert_eq!(asked.again(limits(3), Duration::ZERO), None);
        assert!(accepted.accepted);
        assert_eq!(asked.latest.get(&account).unwrap().decision, accepted);
    }

    #[test]
    fn memory_is_bounded_and_keeps_what_was_asked_last() {
        let mut latest = asked(0, 0).latest;
        let account = |number| format!("account-{number}").parse().unwrap();
        for number in 0..3 * CAPACITY {
            latest.remember(&account(number), limits(3), refusal(), Instant::now(), 0);
        }
        assert!(latest.young.len() + latest.old.len() <= CAPACITY);
        assert!(latest.get(&account(3 * CAPACITY - CAPACITY / 2)).is_some());
    }
}
