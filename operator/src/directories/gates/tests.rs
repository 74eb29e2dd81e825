//! Gates that are waited for, and the time for which they are.

use std::time::Duration;

use serde_json::json;
use water_domain::Timestamp;
use water_keystore::{GateLease, Renewal};

use super::*;

const NOW: i64 = 1_000_000;
const CHANGE: Position = Position {
    generation: 7,
    seq: 10,
};

fn lease(pod: &str, generation: u64, seq: u64, silent: Duration) -> GateLease {
    GateLease {
        uid: format!("uid-of-{pod}"),
        generation,
        seq,
        grace: Duration::from_secs(120),
        renewed: Timestamp::from_millis(NOW - silent.as_millis() as i64).unwrap(),
        renewal: Renewal::default(),
    }
}

fn pod(name: &str, may_serve: bool) -> GatePod {
    GatePod {
        name: name.into(),
        uid: format!("uid-of-{name}"),
        may_serve,
        running: None,
        is_elsewhere: false,
    }
}

/// A gate's pod that is not ready yet and whose process started at this moment of Redis' clock.
fn started(name: &str, running: i64) -> GatePod {
    GatePod {
        running: Timestamp::from_millis(running),
        ..pod(name, false)
    }
}

/// The pods that are missed at the first check.
fn missed_first(leases: &Leases, pods: &[GatePod], now: Instant) -> MissingLeases {
    missed(&MissingLeases::default(), leases, pods, now)
}

/// The gates that are awaited after checks that have shown the same for so long.
fn awaited_for(gates: Vec<GateLease>, pods: Vec<GatePod>, looking: Duration) -> Vec<String> {
    let leases = Leases {
        now: Timestamp::from_millis(NOW).unwrap(),
        generation: Some(7),
        seq: CHANGE.seq,
        gates,
    };
    let first = Instant::now();
    let now = first + looking;
    let missed = missed(&missed_first(&leases, &pods, first), &leases, &pods, now);
    let gates = Gates {
        leases,
        pods,
        missed,
    };
    gates.awaited(&CHANGE, now).pods.into_iter().collect()
}

fn awaited(gates: Vec<GateLease>, pods: Vec<GatePod>) -> Vec<String> {
    awaited_for(gates, pods, Duration::ZERO)
}

const AT_ONCE: Duration = Duration::ZERO;
const RUN_OUT: Duration = Duration::from_secs(130);

#[test]
fn without_a_gate_nothing_is_waited_for() {
    assert!(awaited(vec![], vec![]).is_empty());
}

#[test]
fn a_gate_is_waited_for_until_it_acknowledges_in_the_present_generation() {
    let of = |generation, seq| {
        awaited(
            vec![lease("a", generation, seq, AT_ONCE)],
            vec![pod("a", true)],
        )
    };
    assert_eq!(of(7, 9), ["a"]);
    assert_eq!(of(6, 99), ["a"]);
    assert!(of(7, 10).is_empty());
}

#[test]
fn a_gate_that_is_not_ready_yet_and_has_a_lease_may_have_read_the_directory() {
    assert_eq!(
        awaited(vec![lease("a", 0, 0, AT_ONCE)], vec![pod("a", false)]),
        ["a"]
    );
}

#[test]
fn a_silent_gate_is_waited_for_until_its_grace_and_ten_seconds_are_over() {
    let silent = |silent| awaited(vec![lease("a", 7, 9, silent)], vec![pod("a", true)]);
    assert_eq!(silent(RUN_OUT - Duration::from_millis(1)), ["a"]);
    assert!(silent(RUN_OUT).is_empty());
}

#[test]
fn a_gate_whose_pod_is_gone_holds_nothing_up_even_if_another_has_its_name() {
    let gone = || vec![lease("a", 7, 9, AT_ONCE)];
    assert!(awaited(gone(), vec![]).is_empty());
    let mut successor = pod("a", false);
    successor.uid = "another".into();
    assert!(awaited(gone(), vec![successor]).is_empty());
}

#[test]
fn a_pod_that_may_serve_is_missed_when_redis_has_lost_its_lease_and_not_for_ever() {
    let lost = |looking| awaited_for(vec![], vec![pod("a", true)], looking);
    assert_eq!(lost(AT_ONCE), ["a"]);
    assert_eq!(lost(RUN_OUT - Duration::from_millis(1)), ["a"]);
    assert!(lost(RUN_OUT).is_empty());
}

#[test]
fn a_pod_that_was_never_ready_and_has_no_lease_has_read_nothing() {
    assert!(awaited(vec![], vec![pod("a", false)]).is_empty());
    let after_the_rebuild = MARGIN.as_millis() as i64 + 8;
    assert!(awaited(vec![], vec![started("a", after_the_rebuild)]).is_empty());
}

#[test]
fn a_pod_that_has_been_running_since_before_the_rebuild_may_have_read_what_was_lost() {
    let before_the_rebuild = || vec![started("a", 7)];
    assert_eq!(awaited(vec![], before_the_rebuild()), ["a"]);
    assert!(awaited_for(vec![], before_the_rebuild(), RUN_OUT).is_empty());
}

#[test]
fn a_lease_that_a_rollback_brought_back_is_waited_for_as_if_it_were_missing() {
    let restored = |looking| {
        let lease = lease("a", 6, 9, Duration::from_secs(3_000));
        awaited_for(vec![lease], vec![pod("a", true)], looking)
    };
    assert_eq!(restored(AT_ONCE), ["a"]);
    assert_eq!(restored(RUN_OUT - Duration::from_millis(1)), ["a"]);
    assert!(restored(RUN_OUT).is_empty());
}

fn elsewhere(pod: GatePod) -> GatePod {
    GatePod {
        is_elsewhere: true,
        ..pod
    }
}

#[test]
fn a_pod_of_another_redis_that_serves_or_may_soon_is_waited_for_without_limit() {
    let for_long = |pod| awaited_for(vec![], vec![elsewhere(pod)], 1_000 * RUN_OUT);
    assert_eq!(for_long(pod("a", true)), ["a"]);
    let after_the_rebuild = 2 * MARGIN.as_millis() as i64;
    assert_eq!(for_long(started("a", after_the_rebuild)), ["a"]);
    assert!(for_long(pod("a", false)).is_empty(), "it does not run");
}

#[test]
fn a_pod_that_was_made_for_another_redis_and_has_a_lease_here_is_judged_by_that() {
    let of = |seq, silent| {
        let lease = lease("a", 7, seq, silent);
        awaited(vec![lease], vec![elsewhere(pod("a", true))])
    };
    assert_eq!(of(9, AT_ONCE), ["a"]);
    assert!(of(10, AT_ONCE).is_empty());
    assert!(of(9, RUN_OUT).is_empty());
}

#[test]
fn gates_whose_url_names_another_host_read_another_redis_unless_one_has_a_lease_here() {
    let leases = |gates| Leases {
        now: Timestamp::from_millis(NOW).unwrap(),
        generation: Some(7),
        seq: CHANGE.seq,
        gates,
    };
    let two = || vec![pod("a", true), pod("b", true)];
    let doubted = |pods, gates| {
        let pods = unproven(pods, &leases(gates)).into_iter();
        pods.map(|pod| pod.is_elsewhere).collect::<Vec<_>>()
    };
    assert_eq!(doubted(two(), vec![]), [true, true]);
    let proof = || vec![lease("a", 6, 9, RUN_OUT)];
    assert_eq!(doubted(two(), proof()), [false, false]);
    let former = || vec![elsewhere(pod("a", true)), pod("b", true)];
    assert_eq!(doubted(former(), proof()), [true, true]);
}

#[test]
fn a_pod_reads_another_redis_if_it_says_that_it_was_made_for_another() {
    let of = |annotations: serde_json::Value, store| {
        let pod = json!({ "metadata": { "annotations": annotations } });
        let pod = GatePod::read(&serde_json::from_value(pod).unwrap(), store);
        pod.unwrap().is_elsewhere
    };
    let made_for = |store: &str| json!({ GATE_STORE: store });
    assert!(of(made_for("former"), Some("present")));
    assert!(of(made_for("former"), None));
    assert!(!of(made_for("present"), Some("present")));
    assert!(!of(json!({}), Some("present")), "it names none");
}

/// Whether a gate that had one lease at the first check and the other a second later is waited for since the second.
fn is_missed_again(first: (u64, Option<GateLease>), second: (u64, Option<GateLease>)) -> bool {
    let shown = |(generation, lease): (u64, Option<GateLease>)| Leases {
        now: Timestamp::from_millis(NOW).unwrap(),
        generation: Some(generation),
        seq: CHANGE.seq,
        gates: lease.into_iter().collect(),
    };
    let (pods, begin) = (vec![pod("a", true)], Instant::now());
    let before = missed_first(&shown(first), &pods, begin);
    let leases = shown(second);
    let missed = missed(&before, &leases, &pods, begin + Duration::from_secs(1));
    let gates = Gates {
        leases,
        pods,
        missed,
    };
    let is_awaited = |now| !gates.awaited(&CHANGE, now).pods.is_empty();
    assert!(is_awaited(begin + RUN_OUT - Duration::from_millis(1)));
    is_awaited(begin + RUN_OUT)
}

#[test]
fn a_gate_that_renews_or_whose_redis_loses_its_data_again_is_missed_again() {
    let old = || Some(lease("a", 6, 9, Duration::from_secs(300)));
    let renewed = Some(lease("a", 6, 9, AT_ONCE));
    assert!(!is_missed_again((7, old()), (7, old())));
    assert!(is_missed_again((7, old()), (7, renewed)));
    assert!(is_missed_again((7, old()), (8, old())));
}

#[test]
fn a_gate_whose_outdated_lease_is_dropped_is_not_missed_again() {
    let old = || Some(lease("a", 6, 9, Duration::from_secs(3_700)));
    assert!(!is_missed_again((7, old()), (7, None)));
    assert!(is_missed_again((7, old()), (8, None)));
}

#[test]
fn a_gate_that_crashed_in_its_load_is_waited_for_until_its_grace_and_ten_seconds_are_over() {
    let crashed = |looking| {
        let lease = lease("a", 0, 0, AT_ONCE);
        awaited_for(vec![lease], vec![pod("a", false)], looking)
    };
    assert_eq!(crashed(RUN_OUT - Duration::from_millis(1)), ["a"]);
    assert!(crashed(RUN_OUT).is_empty());
}

#[test]
fn a_missed_pod_that_becomes_unready_is_still_missed() {
    let leases = Leases {
        now: Timestamp::from_millis(NOW).unwrap(),
        generation: Some(7),
        seq: CHANGE.seq,
        gates: vec![],
    };
    let now = Instant::now();
    let before = missed_first(&leases, &[pod("a", true)], now);
    let later = now + Duration::from_secs(1);
    assert_eq!(missed(&before, &leases, &[pod("a", false)], later), before);
    assert!(missed(&before, &leases, &[], later).pods.is_empty());
}

/// Whether the change waits for a gate that one look after the other shows so: copy's generation, process
/// and renewals, the directory's last change.
fn awaits_after(looks: &[(u64, u64, u64, u64)]) -> bool {
    let (pods, now) = (vec![pod("a", false)], Instant::now());
    let mut gates = Gates {
        leases: Leases {
            now: Timestamp::from_millis(NOW).unwrap(),
            generation: Some(7),
            seq: 0,
            gates: vec![],
        },
        pods,
        missed: MissingLeases::default(),
    };
    for &(generation, start, count, seq) in looks {
        let lease = GateLease {
            renewal: Renewal { start, count },
            ..lease("a", generation, 9, AT_ONCE)
        };
        gates.leases.gates = vec![lease];
        gates.leases.seq = seq;
        gates.missed = missed(&gates.missed, &gates.leases, &gates.pods, now);
    }
    !gates.awaited(&CHANGE, now).pods.is_empty()
}

#[test]
fn a_gate_without_a_copy_that_renews_after_a_look_reads_in_its_next_load_what_was_there() {
    let before = CHANGE.seq - 1;
    for (looks, awaits) in [
        (&[(0, 1, 1, 10)][..], true),
        (&[(0, 1, 1, 10), (0, 1, 1, 10)], true),
        (&[(0, 1, 1, 10), (0, 1, 2, 10)], false),
        (&[(0, 1, 9, 10), (0, 2, 1, 10)], false),
        // The change came between: the load that is running may lack it.
        (&[(0, 1, 1, before), (0, 1, 2, 10)], true),
        (&[(0, 1, 1, before), (0, 1, 1, 10), (0, 1, 2, 11)], false),
        // A copy is served until its reload is done.
        (&[(6, 1, 1, 10), (6, 1, 2, 10)], true),
        (&[(6, 1, 1, 10), (0, 2, 1, 10)], true),
        (&[(0, 1, 1, 10), (0, 1, 2, 10), (7, 1, 3, 10)], true),
    ] {
        assert_eq!(awaits_after(looks), awaits, "{looks:?}");
    }
}

#[test]
fn all_who_are_awaited_are_named_in_order() {
    let leases = vec![lease("c", 7, 1, AT_ONCE), lease("b", 7, 10, AT_ONCE)];
    let pods = vec![pod("c", true), pod("b", true), pod("a", true)];
    assert_eq!(awaited(leases, pods), ["a", "c"]);
}

#[test]
fn a_pod_runs_while_the_gates_container_does() {
    let of = |container: &str, state: serde_json::Value| {
        let pod = json!({ "status": { "containerStatuses": [{
            "name": container, "image": "", "imageID": "", "ready": false, "restartCount": 1, "state": state,
        }] } });
        GatePod::read(&serde_json::from_value(pod).unwrap(), None)
            .unwrap()
            .running
    };
    let running = json!({ "running": { "startedAt": "2026-01-01T00:00:00Z" } });
    let since = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    assert_eq!(of("gate", running.clone()), Some(since));
    assert_eq!(of("sidecar", running), None);
    let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    assert_eq!(of("gate", waiting), None);
}

#[test]
fn a_pod_may_serve_when_it_is_ready_or_terminating_and_not_after_its_end() {
    let of = |change: serde_json::Value| {
        let mut pod =
            json!({ "metadata": { "name": "a", "uid": "u" }, "status": { "phase": "Running" } });
        for (field, value) in change.as_object().unwrap() {
            for (name, value) in value.as_object().unwrap() {
                pod[field][name] = value.clone();
            }
        }
        GatePod::read(&serde_json::from_value(pod).unwrap(), None).map(|pod| pod.may_serve)
    };
    assert_eq!(of(json!({})), Some(false));
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    assert_eq!(of(ready), Some(true));
    let terminating = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    assert_eq!(of(terminating), Some(true));
    assert_eq!(of(json!({ "status": { "phase": "Failed" } })), None);
}

#[test]
fn a_lease_of_a_pod_that_nobody_has_reported_is_without_one() {
    let gates = ["gate-0", "gate-1"].map(|pod| lease(pod, 7, 10, Duration::ZERO));
    let leases = Leases {
        now: Timestamp::from_millis(NOW).unwrap(),
        generation: Some(7),
        seq: CHANGE.seq,
        gates: gates.into(),
    };
    let both = ["gate-0", "gate-1"].map(|name| pod(name, true));
    let alone = without_pod(&both[..1], &leases);
    assert_eq!(alone, HashSet::from(["uid-of-gate-1".to_owned()]));
    assert!(without_pod(&both, &leases).is_empty());
}
