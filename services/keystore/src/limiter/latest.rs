//! Last decision of Redis for each account: a refusal holds without asking again, until its slot opens or a key or plan
//! changes; and a gate that cannot ask continues from the last decision.

use std::mem::swap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use tokio::time::Instant;
use water_domain::{AccountId, Limits};

use super::decision::Decision;

/// Accounts remembered at once; at about 200 bytes each this bounds the memory to some 2 MB. Of
/// more active ones those asked about longest ago are forgotten, which costs a question to Redis.
const CAPACITY: usize = 10_000;

/// Memory of one worker of decisions, in two halves: a full one replaces the other.
#[derive(Debug)]
pub(super) struct Latest {
    young: HashMap<AccountId, CachedDecision>,
    old: HashMap<AccountId, CachedDecision>,
    changes: Arc<AtomicU64>,
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
        self.young.get(account).or_else(|| self.old.get(account))
    }

    /// The refusal of this account under these limits, if it still holds at `now`. Without one Redis is asked, and the
    /// number is given back with its decision: a change of a key or plan while the answer is under way may make a
    /// refusal obsolete, and the number shows that.
    pub(super) fn look_up(
        &self,
        account: &AccountId,
        limits: Limits,
        now: Instant,
    ) -> (u64, Option<Decision>) {
        let version = self.changes.load(Ordering::Acquire);
        let holds = |known: &&CachedDecision| known.version == version && known.limits == limits;
        let refusal = self.get(account).filter(holds);
        (version, refusal.and_then(|known| known.still_refused(now)))
    }

    /// Notes a decision, with the moment and the number from before it was asked for.
    pub(super) fn remember(
        &mut self,
        account: &AccountId,
        limits: Limits,
        decision: Decision,
        asked: Instant,
        version: u64,
    ) {
        let known = CachedDecision {
            decision,
            asked,
            limits,
            version,
        };
        if let Some(earlier) = self.young.get_mut(account) {
            *earlier = known;
            return;
        }
        if self.young.len() >= CAPACITY / 2 {
            swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(account.clone(), known);
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

    /// A refusal under 3 a minute, with a slot that opens in 30 s.
    fn refusal() -> Decision {
        Decision::read("0 0 3 30000000 3 1", limits(3)).unwrap()
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
        fn again(&self, limits: Limits, after: Duration) -> Option<Decision> {
            let account = "acme".parse().unwrap();
            self.latest.look_up(&account, limits, self.at + after).1
        }
    }

    #[test]
    fn a_refusal_holds_until_its_slot_opens() {
        let asked = asked(0, 0);
        let later = asked
            .again(limits(3), Duration::from_millis(29_999))
            .unwrap();
        assert_eq!(later.retry_after_seconds(), Some(1));
        assert_eq!(asked.again(limits(3), Duration::from_secs(30)), None);
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
        let asked = asked(0, 0);
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
        let accepted = Decision::read("1 0 1 60000000 1 1", limits(3)).unwrap();
        asked
            .latest
            .remember(&account, limits(3), accepted, asked.at, 0);
        assert_eq!(asked.again(limits(3), Duration::ZERO), None);
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
