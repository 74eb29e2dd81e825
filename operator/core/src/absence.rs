//! Rules by which a change waits for a gate whose lease acknowledges nothing: it is missing, of another generation, or
//! of a process that has no copy of the directory yet.
//!
//! A gate renews its lease before each load, and never while a load runs. So a renewal without a copy ends every load
//! before it, and the next one reads what was there. A gate that never completes a load delays a change until it has
//! renewed between two checks, and one that crashes in its load until it is silent for as long as any other.

use std::ops::Sub;
use std::time::Duration;

use water_domain::Timestamp;

/// Check of such a gate's lease. `R` orders the renewals of one pod, and `T` is a time of the machine that checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Check<R, T> {
    /// Time of the last renewal; `None` without a lease.
    pub renewed: Option<Timestamp>,
    /// Place of that renewal in the order of the pod's renewals, if its process has no copy.
    pub without_copy: Option<R>,
    /// The directory's last change when the lease was read.
    pub seq: u64,
    /// Time of the check, by a monotonic clock.
    pub now: T,
}

/// Findings of the checks of one generation about such a gate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Absence<R, T> {
    /// The renewal of its outdated lease; `None` without any lease.
    renewed: Option<Timestamp>,
    /// Place of that renewal in the order of the pod's renewals, if the pod has no copy.
    without_copy: Option<R>,
    /// The directory's last change when that was read.
    seq: u64,
    /// The last change that its next load reads: a renewal without a copy followed it.
    acknowledged: u64,
    /// Time of the beginning.
    since: T,
}

impl<R: Copy + Ord, T: Copy + Sub<Output = Duration>> Absence<R, T> {
    /// Returns what is known after another check. `earlier`: what was known before it in the same generation.
    pub fn after(earlier: Option<&Self>, check: Check<R, T>) -> Self {
        // An outdated lease is dropped after an hour without a renewal.
        let unchanged = earlier
            .filter(|earlier| check.renewed.is_none() || earlier.renewed == check.renewed)
            .map(|earlier| earlier.since);
        let acknowledged = earlier.map_or(0, |earlier| {
            let has_renewed =
                earlier.without_copy.is_some() && earlier.without_copy < check.without_copy;
            if has_renewed {
                earlier.seq
            } else {
                earlier.acknowledged
            }
        });
        Self {
            renewed: check.renewed,
            without_copy: check.without_copy,
            seq: check.seq,
            acknowledged,
            since: unchanged.unwrap_or(check.now),
        }
    }

    /// Whether the gate can act no more on what was there before `change`: it has no copy, and its next load reads the
    /// change, or it has been `silent` for so long that it serves nothing by itself.
    pub fn is_over(&self, change: u64, silent: Duration, now: T) -> bool {
        let reads = self.without_copy.is_some() && self.acknowledged >= change;
        reads || now - self.since >= silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGE: u64 = 10;
    const SILENT: Duration = Duration::from_secs(130);
    const SHORT: Duration = Duration::from_secs(1);

    type GateAbsence = Absence<u8, Duration>;

    /// Check that shows the renewal of this number, at this time.
    fn check(renewal: u8, has_copy: bool, now: Duration) -> Check<u8, Duration> {
        Check {
            renewed: Timestamp::from_millis(i64::from(renewal)),
            without_copy: (!has_copy).then_some(renewal),
            seq: CHANGE,
            now,
        }
    }

    #[test]
    fn a_gate_without_a_copy_is_waited_for_until_it_renews_after_a_check() {
        let first = GateAbsence::after(None, check(1, false, Duration::ZERO));
        assert!(!first.is_over(CHANGE, SILENT, SHORT));
        let same = GateAbsence::after(Some(&first), check(1, false, SHORT));
        assert!(!same.is_over(CHANGE, SILENT, SHORT));
        let renewed = GateAbsence::after(Some(&same), check(2, false, SHORT));
        assert!(renewed.is_over(CHANGE, SILENT, SHORT));
        assert!(!renewed.is_over(CHANGE + 1, SILENT, SHORT));
    }

    #[test]
    fn a_gate_that_crashes_in_its_load_is_waited_for_until_it_has_been_silent_long_enough() {
        let first = GateAbsence::after(None, check(1, false, SHORT));
        let last = GateAbsence::after(Some(&first), check(1, false, SILENT));
        assert!(!last.is_over(CHANGE, SILENT, SILENT));
        assert!(last.is_over(CHANGE, SILENT, SHORT + SILENT));
    }

    #[test]
    fn a_gate_that_keeps_a_copy_is_waited_for_from_each_renewal_on() {
        let first = GateAbsence::after(None, check(1, true, Duration::ZERO));
        let renewed = GateAbsence::after(Some(&first), check(2, true, SHORT));
        assert!(!renewed.is_over(CHANGE, SILENT, SILENT));
        assert!(renewed.is_over(CHANGE, SILENT, SHORT + SILENT));
    }
}
