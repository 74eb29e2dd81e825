//! Gates that serve and do not follow the key directory. They have no lease in it: their `gate-url`
//! names another Redis than `operator-url`, or they were not rolled since it changed. What is revoked
//! here may work there.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use water_domain::Timestamp;
use water_keystore::Leases;
use water_resources::WaterDataApi;

use super::place;
use crate::context::Context;
use crate::directories::duties::Duty;

/// Time for a gate to write its lease. It does so before it is ready, and renews it every second; after a rebuild, or a
/// Redis that was wiped, it may take a few.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// The pods' names, in their order; none while the directory cannot be asked, which is reported as a duty that is not
/// done.
pub async fn find(api: &WaterDataApi, context: &Context) -> Vec<String> {
    let place = place(api);
    let Some(open) = context.directories.get(&place) else {
        return Vec::new();
    };
    // A Redis that is away is counted where it was asked, and described in the same words each time.
    let leases = match open.answers() {
        Ok(()) => open.directory().leases().await.map_err(Into::into),
        Err(away) => Err(away),
    };
    open.note_duty(Duty::FindStrays, &leases, &context.metrics);
    let Ok(leases) = leases else {
        return Vec::new();
    };
    let mut strays: Vec<String> = context
        .gate_pods
        .for_api(&place)
        .iter()
        .filter(|pod| is_stray(pod, &leases))
        .map(ResourceExt::name_any)
        .collect();
    strays.sort();
    strays
}

/// Whether the pod and the directory have both existed for long, and know nothing of each other.
fn is_stray(pod: &Pod, leases: &Leases) -> bool {
    let has_settled = |since: Option<i64>| {
        let settled = SETTLED_AFTER.as_millis() as i64;
        since.is_some_and(|since| leases.now.as_millis() - since >= settled)
    };
    leases.get(&pod.uid().unwrap_or_default()).is_none()
        && has_settled(ready_since(pod))
        && has_settled(leases.rebuilt().map(Timestamp::as_millis))
}

/// Time since which the pod is ready, in milliseconds; `None`: it is not ready, or does not report that time.
fn ready_since(pod: &Pod) -> Option<i64> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions
        .iter()
        .find(|condition| condition.type_ == "Ready" && condition.status == "True")?;
    Some(ready.last_transition_time.as_ref()?.0.as_millisecond())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use water_keystore::{GateLease, Renewal};

    use super::*;

    fn pod(since: Option<&str>) -> Pod {
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": since });
        let pod = json!({ "metadata": { "uid": "pod" }, "status": { "conditions": [ready] } });
        serde_json::from_value(pod).unwrap()
    }

    fn leases(rebuilt: &str, gates: Vec<GateLease>) -> Leases {
        let millis = |text| Timestamp::parse(text).unwrap();
        Leases {
            now: millis("2026-01-01T00:10:00Z"),
            generation: u64::try_from(millis(rebuilt).as_millis()).ok(),
            seq: 1,
            gates,
        }
    }

    const LONG_AGO: &str = "2026-01-01T00:00:00Z";
    const JUST_NOW: &str = "2026-01-01T00:09:30Z";

    #[test]
    fn a_gate_that_is_ready_for_long_without_a_lease_is_a_stray() {
        assert!(is_stray(
            &pod(Some(LONG_AGO)),
            &leases(LONG_AGO, Vec::new())
        ));
    }

    #[test]
    fn a_gate_with_a_lease_follows_the_directory() {
        let lease = GateLease {
            uid: "pod".into(),
            generation: 1,
            seq: 1,
            grace: Duration::ZERO,
            renewed: Timestamp::from_millis(0).unwrap(),
            renewal: Renewal::default(),
        };
        assert!(!is_stray(
            &pod(Some(LONG_AGO)),
            &leases(LONG_AGO, vec![lease])
        ));
    }

    #[test]
    fn a_gate_or_a_directory_that_has_just_come_is_given_time() {
        assert!(!is_stray(
            &pod(Some(JUST_NOW)),
            &leases(LONG_AGO, Vec::new())
        ));
        assert!(!is_stray(
            &pod(Some(LONG_AGO)),
            &leases(JUST_NOW, Vec::new())
        ));
        assert!(!is_stray(&pod(None), &leases(LONG_AGO, Vec::new())));
    }
}
