//! Gates that are waited for where their pods cannot be listed any more.

use std::time::Duration;

use water_domain::Timestamp;
use water_keystore::{GateLease, Renewal};

use super::*;

const NOW: i64 = 1_000_000;
const AT_ONCE: Duration = Duration::ZERO;
const SHORT: Duration = Duration::from_millis(1);
const RUN_OUT: Duration = Duration::from_secs(130);

/// Facts about the gates.
#[derive(Default)]
struct Case {
    /// Time since the last rebuild.
    rebuilt: Duration,
    /// Leases by uid, with the last change that each has applied: the change is the tenth.
    leases: Vec<(&'static str, u64)>,
    /// Silence of all of them.
    silent: Duration,
    /// Uids of the pods in the last report of the watch.
    shown: Vec<&'static str>,
    /// Uids of leases whose pods are known to be gone.
    gone: Vec<&'static str>,
    /// Whether the pods were listed since the rebuild.
    was_listed: bool,
}

impl Case {
    /// Gates that are waited for after checks that have shown the same for so long.
    fn awaited_after(&self, looking: Duration) -> Vec<String> {
        let millis = |time: Duration| time.as_millis() as i64;
        let generation = (NOW - millis(self.rebuilt)) as u64;
        let lease = |(uid, seq): &(&str, u64)| GateLease {
            uid: (*uid).into(),
            generation,
            seq: *seq,
            grace: GATE_GRACE,
            renewed: Timestamp::from_millis(NOW - millis(self.silent)).unwrap(),
            renewal: Renewal::default(),
        };
        let leases = Leases {
            now: Timestamp::from_millis(NOW).unwrap(),
            generation: Some(generation),
            seq: 10,
            gates: self.leases.iter().map(lease).collect(),
        };
        let shown = self.shown.iter().map(|uid| GatePod {
            name: (*uid).into(),
            uid: (*uid).into(),
            may_serve: true,
            running: None,
            is_elsewhere: false,
        });
        let shown: Vec<GatePod> = shown.collect();
        let gone = self.gone.iter().map(|uid| (*uid).into()).collect();
        let unlisted = unlisted(&shown, &gone, &leases, self.was_listed);
        let pods: Vec<GatePod> = shown.into_iter().chain(unlisted).collect();
        let first = Instant::now();
        let now = first + looking;
        let before = missed(&MissingLeases::default(), &leases, &pods, first);
        let missed = missed(&before, &leases, &pods, now);
        let gates = Gates {
            leases,
            pods,
            missed,
        };
        let change = Position {
            generation,
            seq: 10,
        };
        gates.awaited(&change, now).pods.into_iter().collect()
    }

    fn awaited(&self) -> Vec<String> {
        self.awaited_after(AT_ONCE)
    }
}

#[test]
fn without_a_lease_nothing_is_waited_for_if_the_pods_were_listed_or_the_rebuild_is_long_ago() {
    let case = |was_listed, rebuilt| Case {
        was_listed,
        rebuilt,
        ..Case::default()
    };
    assert!(case(true, AT_ONCE).awaited().is_empty());
    assert!(case(false, RUN_OUT).awaited().is_empty());
    let soon = case(false, RUN_OUT - SHORT);
    assert_eq!(soon.awaited(), ["any gate without a lease"]);
}

#[test]
fn after_a_rebuild_a_gate_that_redis_has_forgotten_is_waited_for_and_not_for_ever() {
    let rebuilt = Case::default();
    assert!(!rebuilt.awaited_after(RUN_OUT - SHORT).is_empty());
    assert!(rebuilt.awaited_after(RUN_OUT).is_empty());
}

#[test]
fn a_lease_of_an_unknown_pod_is_waited_for_until_it_acknowledges_or_runs_out() {
    let case = |seq, silent| Case {
        leases: vec![("a", seq)],
        silent,
        rebuilt: 2 * RUN_OUT,
        ..Case::default()
    };
    assert_eq!(case(9, AT_ONCE).awaited(), ["a"]);
    assert_eq!(case(9, RUN_OUT - SHORT).awaited(), ["a"]);
    assert!(case(10, AT_ONCE).awaited().is_empty());
    assert!(case(9, RUN_OUT).awaited().is_empty());
}

#[test]
fn a_lease_whose_pod_is_gone_holds_nothing_up() {
    let gone = Case {
        leases: vec![("a", 9), ("b", 9)],
        gone: vec!["a"],
        was_listed: true,
        ..Case::default()
    };
    assert_eq!(gone.awaited(), ["b"]);
}

#[test]
fn a_pod_in_the_last_word_is_waited_for_as_ever() {
    let case = |leases| Case {
        leases,
        shown: vec!["a"],
        was_listed: true,
        ..Case::default()
    };
    assert_eq!(case(vec![("a", 9)]).awaited(), ["a"]);
    assert!(case(vec![("a", 10)]).awaited().is_empty());
    assert_eq!(case(vec![]).awaited(), ["a"]);
    assert!(case(vec![]).awaited_after(RUN_OUT).is_empty());
}
