//! Refusals that hold without asking again: until the slot opens, or a key or plan changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;
use water_domain::{AccountId, Limits};

use super::decision::Decision;

/// Accounts remembered at once; at about 200 bytes each this bounds the memory to some 2 MB.
const CAPACITY: usize = 10_000;

#[derive(Debug)]
pub(super) struct Refusals {
    by_account: HashMap<AccountId, Refusal>,
    changes: Arc<AtomicU64>,
    /// `changes` when the first of these was remembered.
    version: u64,
}

#[derive(Debug)]
struct Refusal {
    limits: Limits,
    decision: Decision,
    /// Before the script ran, so that a slot is never taken for closed when it is open.
    asked: Instant,
    opens: Instant,
}

/// What is known about a request before Redis is asked.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Recall {
    /// It would be refused again.
    Refused(Decision),
    /// Nothing: ask, and give this number back with a refusal. A change of a key or plan while the
    /// answer is under way may make the refusal obsolete, and the number tells.
    Ask(u64),
}

impl Refusals {
    pub(super) fn new(changes: Arc<AtomicU64>) -> Self {
        let version = changes.load(Ordering::Acquire);
        Self {
            by_account: HashMap::new(),
            changes,
            version,
        }
    }

    /// The refusal of this account under these limits, if it still holds at `now`.
    pub(super) fn recall(&mut self, account: &AccountId, limits: Limits, now: Instant) -> Recall {
        let ask = Recall::Ask(self.forget_obsolete());
        let Some(refusal) = self.by_account.get(account) else {
            return ask;
        };
        if now >= refusal.opens {
            self.by_account.remove(account);
            return ask;
        }
        if refusal.limits != limits {
            return ask;
        }
        let elapsed = now.saturating_duration_since(refusal.asked);
        Recall::Refused(refusal.decision.later(elapsed))
    }

    fn forget_obsolete(&mut self) -> u64 {
        let version = self.changes.load(Ordering::Acquire);
        if version != self.version {
            self.by_account.clear();
            self.version = version;
        }
        version
    }

    pub(super) fn remember(
        &mut self,
        account: &AccountId,
        limits: Limits,
        decision: Decision,
        asked: Instant,
        version: u64,
    ) {
        let Some(wait) = decision.retry_after() else {
            return;
        };
        if self.forget_obsolete() != version {
            return;
        }
        if self.by_account.len() >= CAPACITY {
            self.by_account.retain(|_, refusal| asked < refusal.opens);
        }
        // Still full: forgetting costs a question to Redis, never a wrong answer.
        if self.by_account.len() >= CAPACITY {
            self.by_account.clear();
        }
        let opens = asked + wait;
        let refusal = Refusal {
            limits,
            decision,
            asked,
            opens,
        };
        self.by_account.insert(account.clone(), refusal);
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

    struct Asked {
        refusals: Refusals,
        changes: Arc<AtomicU64>,
        at: Instant,
    }

    /// An account that was refused, with a slot that opens in 30 s.
    fn refused() -> Asked {
        let changes = Arc::new(AtomicU64::new(0));
        let mut refusals = Refusals::new(changes.clone());
        let decision = Decision::read([0, 0, 3, 30_000_000, 3, 1], limits(3)).unwrap();
        let at = Instant::now();
        let version = refusals.forget_obsolete();
        refusals.remember(&"acme".parse().unwrap(), limits(3), decision, at, version);
        Asked {
            refusals,
            changes,
            at,
        }
    }

    impl Asked {
        fn again(&mut self, limits: Limits, after: Duration) -> Option<Decision> {
            let account = "acme".parse().unwrap();
            match self.refusals.recall(&account, limits, self.at + after) {
                Recall::Refused(decision) => Some(decision),
                Recall::Ask(_) => None,
            }
        }
    }

    #[test]
    fn a_refusal_holds_until_its_slot_opens() {
        let mut asked = refused();
        let later = asked
            .again(limits(3), Duration::from_millis(29_999))
            .unwrap();
        assert_eq!(later.retry_after_seconds(), Some(1));
        assert_eq!(asked.again(limits(3), Duration::from_secs(30)), None);
    }

    #[test]
    fn a_refusal_says_nothing_about_other_limits() {
        assert_eq!(refused().again(limits(4), Duration::ZERO), None);
    }

    #[test]
    fn any_change_of_a_key_or_plan_forgets_refusals() {
        let mut asked = refused();
        asked.changes.fetch_add(1, Ordering::Release);
        assert_eq!(asked.again(limits(3), Duration::ZERO), None);
    }

    #[test]
    fn a_refusal_from_before_a_change_is_not_remembered_after_it() {
        let mut asked = refused();
        let before = asked.refusals.forget_obsolete();
        asked.changes.fetch_add(1, Ordering::Release);
        let decision = Decision::read([0, 0, 3, 30_000_000, 3, 1], limits(3)).unwrap();
        let account: AccountId = "acme".parse().unwrap();
        asked
            .refusals
            .remember(&account, limits(3), decision, asked.at, before);
        assert_eq!(asked.again(limits(3), Duration::ZERO), None);
    }

    #[test]
    fn memory_is_bounded_whatever_the_number_of_accounts() {
        let mut asked = refused();
        let decision = Decision::read([0, 0, 3, 30_000_000, 3, 1], limits(3)).unwrap();
        for number in 0..=CAPACITY {
            let account = format!("account-{number}").parse().unwrap();
            asked
                .refusals
                .remember(&account, limits(3), decision, asked.at, 0);
        }
        assert!(asked.refusals.by_account.len() <= CAPACITY);
    }
}
