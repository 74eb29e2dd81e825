//! Gates that a change waits for: those that may still act on the state before it. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::Instant;
use water_domain::Timestamp;
use water_keystore::{Leases, MARGIN, Position, Renewal};
use water_operator_core::absence::{Absence, Check};

use crate::installation::render::{GATE_GRACE, GATE_STORE, Part};

/// Name for the gates without a lease where pods cannot be listed.
const WITHOUT_LEASE: &str = "any gate without a lease";

/// Facts about a gate's pod that decide whether a change waits for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatePod {
    /// Name, which a status shows.
    pub name: String,
    /// Uid, which a lease carries.
    pub uid: String,
    /// Whether it is ready or terminating, so that it may have loaded the directory, even if Redis has lost its lease.
    pub may_serve: bool,
    /// Time since which the gate's process runs; `None`: it does not.
    pub running: Option<Timestamp>,
    /// Whether it was made for another Redis than the gates read now, or they read another than is written here. Unless
    /// it has a lease here, it follows the key directory there, is not cut off, and never stops serving by itself.
    pub is_elsewhere: bool,
}

impl GatePod {
    /// Returns the pod, unless all its containers have ended permanently. `store`: what the pods of gates that read
    /// this Redis carry, if that is known.
    pub fn read(pod: &Pod, store: Option<&str>) -> Option<Self> {
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
            running: running(pod),
            // A pod that was made while the gates' URL could not be read names none.
            is_elsewhere: pod
                .annotations()
                .get(GATE_STORE)
                .is_some_and(|made_for| Some(made_for.as_str()) != store),
        })
    }

    /// Whether it may have read the directory although it has no lease. A gate that is not ready yet
    /// has read nothing before it wrote its lease; Redis can have lost that only if the gate has been
    /// running since before the directory was rebuilt. In another Redis it has one whenever it started.
    fn may_have_read(&self, leases: &Leases) -> bool {
        let is_older = |running: Timestamp| {
            self.is_elsewhere
                || leases.rebuilt().is_none_or(|rebuilt| {
                    running.as_millis() <= rebuilt.as_millis() + MARGIN.as_millis() as i64
                })
        };
        self.may_serve || self.running.is_some_and(is_older)
    }
}

/// The pods where the gates' URL names another host than the operator's. Both may lead to one Redis, as
/// the lease of any gate shows. As long as none does, all gates are taken to read another.
pub fn unproven(pods: Vec<GatePod>, leases: &Leases) -> Vec<GatePod> {
    let is_proof = |pod: &GatePod| !pod.is_elsewhere && leases.get(&pod.uid).is_some();
    if pods.iter().any(is_proof) {
        return pods;
    }
    let doubted = pods.into_iter().map(|pod| GatePod {
        is_elsewhere: true,
        ..pod
    });
    doubted.collect()
}

/// Uids of leases that no pod has.
pub fn without_pod(pods: &[GatePod], leases: &Leases) -> HashSet<String> {
    let uids = leases.gates.iter().map(|lease| &lease.uid);
    let has_none = |uid: &&String| pods.iter().all(|pod| pod.uid != **uid);
    uids.filter(has_none).cloned().collect()
}

/// Gates that may run where pods cannot be listed any more, in addition to those that the watch has `shown`: one for
/// each lease whose pod is not known to be gone, and one that may serve without a lease, unless no gate of which Redis
/// has lost the lease can still serve. That is so when the pods were listed in this generation, or the last rebuild is
/// long ago.
pub fn unlisted(
    shown: &[GatePod],
    gone: &HashSet<String>,
    leases: &Leases,
    was_listed: bool,
) -> Vec<GatePod> {
    let gate = |name: &str| GatePod {
        name: name.into(),
        uid: name.into(),
        may_serve: true,
        running: None,
        is_elsewhere: false,
    };
    let is_unknown = |uid: &&str| !gone.contains(*uid) && shown.iter().all(|pod| pod.uid != **uid);
    let uids = leases.gates.iter().map(|lease| lease.uid.as_str());
    let has_settled = leases.rebuilt().is_some_and(|rebuilt| {
        let since = leases.now.as_millis() - rebuilt.as_millis();
        since >= (GATE_GRACE + MARGIN).as_millis() as i64
    });
    let without_lease = (!was_listed && !has_settled).then_some(WITHOUT_LEASE);
    let unknown = uids.filter(is_unknown).chain(without_lease);
    unknown.map(gate).collect()
}

/// Time since which the gate's container runs.
fn running(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let gate = statuses
        .iter()
        .find(|container| container.name == Part::Gate.component())?;
    let running = gate.state.as_ref()?.running.as_ref()?;
    // A kubelet always says since when.
    let since = running
        .started_at
        .as_ref()
        .map_or(0, |at| at.0.as_millisecond());
    Timestamp::from_millis(since)
}

/// Pods that should have a lease in the present generation and have none, by uid.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct MissingLeases {
    /// The generation in which they are missed. In another one Redis may have lost what came since.
    generation: Option<u64>,
    pods: HashMap<String, Absence<Renewal, Instant>>,
}

/// The pods that are missed at `now`. A missed pod stays missed until it has a lease or is gone.
pub fn missed(
    before: &MissingLeases,
    leases: &Leases,
    pods: &[GatePod],
    now: Instant,
) -> MissingLeases {
    let absent = |pod: &GatePod| {
        let (lease, earlier) = (leases.get(&pod.uid), before.pods.get(&pod.uid));
        let is_missed = match lease {
            Some(lease) => leases.is_outdated(lease),
            None => earlier.is_some() || pod.may_have_read(leases),
        };
        let check = Check {
            renewed: lease.map(|lease| lease.renewed),
            without_copy: lease
                .filter(|lease| lease.generation == 0)
                .map(|lease| lease.renewal),
            seq: leases.seq,
            now,
        };
        let same = earlier.filter(|_| before.generation == leases.generation);
        is_missed.then(|| (pod.uid.clone(), Absence::after(same, check)))
    };
    MissingLeases {
        generation: leases.generation,
        pods: pods.iter().filter_map(absent).collect(),
    }
}

/// Gates as one check showed them. Leases were read first, after the change was written, and the pods after them: a
/// lease without a pod is then that of a pod that is gone.
#[derive(Clone, PartialEq, Debug)]
pub struct Gates {
    /// Leases, each written by its gate.
    pub leases: Leases,
    /// Pods of the gates as the API server reports them.
    pub pods: Vec<GatePod>,
    /// See [`missed`].
    pub missed: MissingLeases,
}

/// Pods that are waited for, by name.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct AwaitedPods {
    /// Names of the pods.
    pub pods: BTreeSet<String>,
    /// Names of the pods among them that read another Redis: only their end ends the wait.
    pub elsewhere: BTreeSet<String>,
}

impl Gates {
    /// The pods that must be waited for before `change` is in force everywhere.
    pub fn awaited(&self, change: &Position, now: Instant) -> AwaitedPods {
        let pods = || self.pods.iter().filter(|pod| self.awaits(pod, change, now));
        let is_elsewhere = |pod: &&GatePod| pod.is_elsewhere && self.leases.get(&pod.uid).is_none();
        let name = |pod: &GatePod| pod.name.clone();
        AwaitedPods {
            pods: pods().map(name).collect(),
            elsewhere: pods().filter(is_elsewhere).map(name).collect(),
        }
    }

    fn awaits(&self, pod: &GatePod, change: &Position, now: Instant) -> bool {
        let absence = self.missed.pods.get(&pod.uid);
        let is_over = |absence: &Absence<Renewal, Instant>, grace: Duration| {
            absence.is_over(change.seq, grace + MARGIN, now)
        };
        match self.leases.get(&pod.uid) {
            None => {
                absence.is_some_and(|absence| pod.is_elsewhere || !is_over(absence, GATE_GRACE))
            }
            Some(lease) if self.leases.is_outdated(lease) => {
                absence.is_none_or(|absence| !is_over(absence, lease.grace))
            }
            Some(lease) => self.leases.awaits(lease, change),
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unlisted_tests;
