//! Fallback limiter while Redis cannot decide: the shares of all accounts at this gate, and the limiter's status. All
//! workers of a process share one, for the gate's share is the process'.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use water_domain::{AccountId, Limits};

use super::decision::Decision;
use super::latest::CachedDecision;
use super::share::{Now, Share, UnchargedRequests};
use crate::failure::Reason;

/// Accounts counted at once; at some 500 bytes each, with 120 a minute, this bounds the memory to
/// about 50 MB, and only while Redis is away.
const CAPACITY: usize = 100_000;
/// Interval between two searches for what may be forgotten, which visit every account.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Error when more accounts than can be counted came while Redis was away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("Redis is away, and this gate counts the requests of {CAPACITY} other accounts already")]
pub struct TooManyAccounts;

/// Fallback limiter of a process. Costs a request nothing while Redis answers.
#[derive(Debug, Default)]
pub struct Standby {
    /// Number that grows with every change of a key or plan; the replica's.
    pub(super) changes: Arc<AtomicU64>,
    /// Number of gates that share the limits; the replica's, 0 before it knows.
    gates: Arc<AtomicU32>,
    shares: Mutex<Shares>,
    failures: [AtomicU64; Reason::ALL.len()],
    admitted: AtomicU64,
    refused: AtomicU64,
    /// Limiters whose breakers are open.
    open: AtomicU32,
    /// Flag, read on every request, that `failing` has a value.
    is_failing: AtomicBool,
    failing: Mutex<Option<Failing>>,
}

#[derive(Debug, Default)]
struct Shares {
    by_account: HashMap<AccountId, Share>,
    swept: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Instant,
    reason: Reason,
}

/// Status of the limiter, for metrics and the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandbyStatus {
    /// Whether requests are decided without Redis.
    pub degraded: bool,
    /// Reason of Redis' last failure, and time since its first; `None` after a success.
    pub failing: Option<(Reason, Duration)>,
    /// Failures of Redis so far, by reason.
    pub failures: [(Reason, u64); Reason::ALL.len()],
    /// Requests admitted by the gate's share so far.
    pub admitted: u64,
    /// Requests refused by it so far.
    pub refused: u64,
    /// Accounts that are counted in memory.
    pub accounts: usize,
    /// Gates that share the limits, this one too.
    pub gates: u32,
}

impl Standby {
    /// A standby that reads the changes and the number of gates from a gate's copy of the directory, as by
    /// [`crate::Replica::changes`] and [`crate::Replica::live_gates`].
    pub fn new(changes: Arc<AtomicU64>, gates: Arc<AtomicU32>) -> Self {
        Self {
            changes,
            gates,
            ..Self::default()
        }
    }

    /// Time for which the limiter has been failing; `None` while it does not.
    pub fn failing_for(&self) -> Option<Duration> {
        // The usual case costs no lock.
        if !self.is_failing.load(Ordering::Acquire) {
            return None;
        }
        self.failing().map(|failing| failing.since.elapsed())
    }

    /// Status of the limiter.
    pub fn status(&self) -> StandbyStatus {
        let failing = *self.failing();
        let count = |reason| self.failures[reason as usize].load(Ordering::Relaxed);
        StandbyStatus {
            degraded: self.open.load(Ordering::Acquire) > 0,
            failing: failing.map(|failing| (failing.reason, failing.since.elapsed())),
            failures: Reason::ALL.map(|reason| (reason, count(reason))),
            admitted: self.admitted.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            accounts: self.shares().by_account.len(),
            gates: self.gates(),
        }
    }

    /// Decides one request by this gate's share; `known` is what Redis last said of the account.
    pub(super) fn charge(
        &self,
        account: &AccountId,
        limits: Limits,
        known: Option<&CachedDecision>,
        now: Now,
        owed: bool,
    ) -> Result<Decision, TooManyAccounts> {
        let gates = self.gates();
        let mut shares = self.shares();
        let share = shares.get_or_insert(account, now.here)?;
        if let Some(known) = known {
            share.seed(known, gates, now);
        }
        let decision = share.charge(limits, gates, now, owed);
        let counter = if decision.accepted {
            &self.admitted
        } else {
            &self.refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(decision)
    }

    /// Takes all that is owed to Redis.
    pub(super) fn settle(&self, now: Instant) -> Vec<(AccountId, UnchargedRequests)> {
        let mut shares = self.shares();
        let owing = shares.by_account.iter_mut();
        owing
            .filter_map(|(account, share)| Some((account.clone(), share.settle(now)?)))
            .collect()
    }

    /// Puts back what Redis did not take.
    pub(super) fn owe(&self, account: AccountId, uncharged: UnchargedRequests) {
        self.shares()
            .by_account
            .entry(account)
            .or_default()
            .owe(uncharged);
    }

    /// Forgets what is over, and returns whether nothing is left.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let mut shares = self.shares();
        shares.by_account.retain(|_, share| !share.is_over(now));
        if shares.by_account.is_empty() {
            shares.by_account = HashMap::new();
        }
        shares.by_account.is_empty()
    }

    /// Notes that Redis did what it was asked.
    pub(super) fn succeeded(&self) {
        if self.is_failing.load(Ordering::Acquire) {
            let mut failing = self.failing();
            *failing = None;
            self.is_failing.store(false, Ordering::Release);
        }
    }

    /// Notes that Redis failed for this reason at `now`.
    pub(super) fn failed(&self, reason: Reason, now: Instant) {
        self.failures[reason as usize].fetch_add(1, Ordering::Relaxed);
        let mut failing = self.failing();
        let since = failing.map_or(now, |failing| failing.since);
        *failing = Some(Failing { since, reason });
        self.is_failing.store(true, Ordering::Release);
    }

    /// Notes that a limiter's breaker opened.
    pub(super) fn opened(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that a limiter's breaker closed.
    pub(super) fn closed(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    fn gates(&self) -> u32 {
        self.gates.load(Ordering::Acquire).max(1)
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        // They are whole between any two statements.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failing(&self) -> MutexGuard<'_, Option<Failing>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shares {
    fn get_or_insert(
        &mut self,
        account: &AccountId,
        now: Instant,
    ) -> Result<&mut Share, TooManyAccounts> {
        if !self.by_account.contains_key(account) {
            self.make_room(now)?;
        }
        Ok(self.by_account.entry(account.clone()).or_default())
    }

    /// Makes room for an account. Forgetting a share that is in use would admit more than the limits: a new account
    /// beyond [`CAPACITY`] is refused.
    fn make_room(&mut self, now: Instant) -> Result<(), TooManyAccounts> {
        let is_due = self.swept.is_none_or(|swept| now >= swept + SWEEP_EVERY);
        if self.by_account.len() >= CAPACITY && is_due {
            self.swept = Some(now);
            self.by_account.retain(|_, share| !share.is_over(now));
        }
        if self.by_account.len() < CAPACITY {
            Ok(())
        } else {
            Err(TooManyAccounts)
        }
    }
}

#[cfg(test)]
mod tests {
    use water_domain::Timestamp;

    use super::*;

    #[test]
    fn more_accounts_than_fit_are_refused_until_others_are_over() {
        let standby = Standby::default();
        let one = std::num::NonZeroU32::MIN;
        let limits = Limits {
            requests_per_minute: one,
            requests_per_day: one,
        };
        let began = Instant::now();
        let charge = |number: usize, after: u64| {
            let now = Now {
                here: began + Duration::from_secs(after),
                redis: Timestamp::from_millis(0).unwrap(),
            };
            let account = format!("account-{number}").parse().unwrap();
            standby.charge(&account, limits, None, now, false)
        };
        for number in 0..CAPACITY {
            assert!(charge(number, 0).unwrap().accepted);
        }
        assert_eq!(charge(CAPACITY, 1), Err(TooManyAccounts));
        assert!(!charge(0, 1).unwrap().accepted);
        assert!(charge(CAPACITY, 60).unwrap().accepted);
    }

    #[test]
    fn what_redis_did_not_take_is_owed_though_the_share_was_forgotten_meanwhile() {
        let standby = Standby::default();
        let limits = Limits {
            requests_per_minute: 10.try_into().unwrap(),
            requests_per_day: 10.try_into().unwrap(),
        };
        let now = Now {
            here: Instant::now(),
            redis: Timestamp::from_millis(20_000 * 86_400_000).unwrap(),
        };
        let account: AccountId = "acme".parse().unwrap();
        standby.charge(&account, limits, None, now, true).unwrap();
        let later = now.here + Duration::from_secs(60);
        let uncharged = standby.settle(later);
        assert_eq!(uncharged[0].1.of_day, 1);
        assert!(standby.is_over(later), "another worker looks just then");
        for (account, uncharged) in uncharged.clone() {
            standby.owe(account, uncharged);
        }
        assert!(!standby.is_over(later));
        assert_eq!(standby.settle(later), uncharged);
    }

    #[test]
    fn a_success_ends_a_failure_and_the_first_one_counts() {
        let standby = Standby::default();
        let began = Instant::now();
        standby.failed(Reason::Down, began);
        standby.failed(Reason::Slow, began + Duration::from_secs(1));
        let failing = standby.failing().unwrap();
        assert_eq!((failing.since, failing.reason), (began, Reason::Slow));
        standby.succeeded();
        assert_eq!(standby.failing_for(), None);
        assert_eq!(standby.status().failures[1], (Reason::Slow, 1));
    }
}
