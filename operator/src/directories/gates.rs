//! Whom a change waits for: the gates that may still act on what was there before it. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::Instant;
use water_keystore::{Acknowledgement, Applied, Leases, MARGIN};

use crate::installation::render::GATE_GRACE;

/// What of a gate's pod matters here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatePod {
    /// Its name, which a status shows.
    pub name: String,
    /// Its uid, which a lease carries.
    pub uid: String,
    /// Ready or terminating: it may have loaded the directory, even if Redis lost its lease. A pod
    /// that was never ready and has no lease has read nothing.
    pub may_serve: bool,
}

impl GatePod {
    /// The pod, unless all its containers have ended for good.
    pub fn of(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return None;
        }
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let is_ready = conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");
        Some(Self {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            may_serve: is_ready || pod.metadata.deletion_timestamp.is_some(),
        })
    }
}

/// Pods that should have a lease and have none, by uid, each with the moment at which it was first
/// missed.
pub type Missed = HashMap<String, Instant>;

/// Who is missed at `now`. One that was missed before stays so until it has a lease or is gone.
pub fn missed(before: &Missed, leases: &Leases, pods: &[GatePod], now: Instant) -> Missed {
    let leased: HashSet<&str> = leases
        .gates
        .iter()
        .map(|lease| lease.uid.as_str())
        .collect();
    pods.iter()
        .filter(|pod| !leased.contains(pod.uid.as_str()))
        .filter_map(|pod| match before.get(&pod.uid) {
            Some(since) => Some((pod.uid.clone(), *since)),
            None => pod.may_serve.then(|| (pod.uid.clone(), now)),
        })
        .collect()
}

/// The gates as one look showed them. Leases were read first, after the change was written, and the
/// pods after them: a lease without a pod is then that of a pod that is gone.
#[derive(Clone, PartialEq, Debug)]
pub struct Gates {
    /// What each gate says of itself.
    pub leases: Leases,
    /// What the API server says of them.
    pub pods: Vec<GatePod>,
    /// See [`missed`].
    pub missed: Missed,
}

impl Gates {
    /// The pods that must be waited for before `change` is in force everywhere, by name.
    pub fn awaited(&self, change: &Applied, now: Instant) -> BTreeSet<String> {
        let Self {
            leases,
            pods,
            missed,
        } = self;
        let silent = pods.iter().filter(|pod| {
            missed
                .get(&pod.uid)
                .is_some_and(|since| now.duration_since(*since) < GATE_GRACE + MARGIN)
        });
        let behind = leases.gates.iter().filter(|lease| {
            pods.iter().any(|pod| pod.uid == lease.uid)
                && leases.acknowledgement(lease, change) == Acknowledgement::Awaited
        });
        let silent = silent.map(|pod| pod.name.clone());
        silent
            .chain(behind.map(|lease| lease.pod.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use water_domain::Timestamp;
    use water_keystore::{GateLease, GateMode};

    use super::*;

    const NOW: i64 = 1_000_000;
    const CHANGE: Applied = Applied {
        generation: 7,
        seq: 10,
    };

    fn lease(pod: &str, generation: u64, seq: u64, silent: Duration) -> GateLease {
        GateLease {
            pod: pod.into(),
            uid: format!("uid-of-{pod}"),
            generation,
            seq,
            grace: Duration::from_secs(120),
            renewed: Timestamp::from_millis(NOW - silent.as_millis() as i64).unwrap(),
            mode: GateMode::Serving,
        }
    }

    fn pod(name: &str, may_serve: bool) -> GatePod {
        GatePod {
            name: name.into(),
            uid: format!("uid-of-{name}"),
            may_serve,
        }
    }

    /// Who is awaited after so long a time of looks that showed the same.
    fn awaited_for(gates: Vec<GateLease>, pods: Vec<GatePod>, looking: Duration) -> Vec<String> {
        let leases = Leases {
            now: Timestamp::from_millis(NOW).unwrap(),
            generation: Some(7),
            gates,
        };
        let first = Instant::now();
        let now = first + looking;
        let missed = missed(
            &missed(&Missed::new(), &leases, &pods, first),
            &leases,
            &pods,
            now,
        );
        let gates = Gates {
            leases,
            pods,
            missed,
        };
        gates.awaited(&CHANGE, now).into_iter().collect()
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
    }

    #[test]
    fn a_missed_pod_that_becomes_unready_is_still_missed() {
        let leases = Leases {
            now: Timestamp::from_millis(NOW).unwrap(),
            generation: Some(7),
            gates: vec![],
        };
        let now = Instant::now();
        let before = missed(&Missed::new(), &leases, &[pod("a", true)], now);
        let later = now + Duration::from_secs(1);
        assert_eq!(missed(&before, &leases, &[pod("a", false)], later), before);
        assert!(missed(&before, &leases, &[], later).is_empty());
    }

    #[test]
    fn all_who_are_awaited_are_named_in_order() {
        let leases = vec![lease("c", 7, 1, AT_ONCE), lease("b", 7, 10, AT_ONCE)];
        let pods = vec![pod("c", true), pod("b", true), pod("a", true)];
        assert_eq!(awaited(leases, pods), ["a", "c"]);
    }

    #[test]
    fn a_pod_may_serve_when_it_is_ready_or_terminating_and_not_after_its_end() {
        let of = |change: serde_json::Value| {
            let mut pod = json!({ "metadata": { "name": "a", "uid": "u" }, "status": { "phase": "Running" } });
            for (field, value) in change.as_object().unwrap() {
                for (name, value) in value.as_object().unwrap() {
                    pod[field][name] = value.clone();
                }
            }
            GatePod::of(&serde_json::from_value(pod).unwrap()).map(|pod| pod.may_serve)
        };
        assert_eq!(of(json!({})), Some(false));
        let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
        assert_eq!(of(ready), Some(true));
        let terminating = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        assert_eq!(of(terminating), Some(true));
        assert_eq!(of(json!({ "status": { "phase": "Failed" } })), None);
    }
}
