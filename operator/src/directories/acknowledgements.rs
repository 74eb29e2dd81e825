//! Looking at the gates for as long as a change waits for them.
//!
//! Their pods come from a watch, which may be behind. A gate writes its lease before it reads the
//! directory, so a pod that the watch has not told of yet shows by its lease, unless Redis has lost
//! that, which begins a new generation. Only then, and when a lease's pod is unknown, the API server
//! is asked.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tracing::debug;
use water_keystore::{Leases, Owner};

use super::gates::{GatePod, Gates, MissingLeases, missed, unproven};
use super::{DirectoryError, OpenDirectory};
use crate::gate_pods::GatePods;

/// Between a write and the first look: a gate on a healthy Redis has acknowledged by then.
const FIRST: Duration = Duration::from_millis(15);
/// Between two looks, in the end.
const LONGEST: Duration = Duration::from_millis(500);
/// A look is given up after this long.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// What earlier looks have shown.
#[derive(Default)]
struct FormerLooks {
    /// A gate that is stuck is waited for once, and not by each change.
    missed: MissingLeases,
    /// The generation in which the API server was last asked for the pods.
    generation: Option<u64>,
    /// Uids of leases whose pods are gone.
    gone: HashSet<String>,
}

/// Looks at the gates while a declaration waits, often at first, and calls `tell` with the owner of each
/// declaration that has come into force.
pub async fn follow(open: &OpenDirectory, pods: &GatePods, tell: impl Fn(&Owner)) -> Infallible {
    let mut known = FormerLooks::default();
    loop {
        open.pending.begun().await;
        let mut pause = FIRST;
        while open.pending.is_anybody_waiting() {
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(LONGEST),
                () = open.pending.another() => {
                    sleep(FIRST).await;
                    pause = FIRST;
                }
            }
            match timeout(LOOK_WITHIN, look(open, pods, &mut known)).await {
                Ok(Ok(in_force)) => in_force.iter().for_each(&tell),
                Ok(Err(error)) => {
                    debug!(error = %error, "cannot look at the gates that are waited for");
                }
                Err(_) => debug!("a look at the gates took longer than {LOOK_WITHIN:?}"),
            }
        }
    }
}

/// One look: leases after the write, pods after the leases.
async fn look(
    open: &OpenDirectory,
    pods: &GatePods,
    known: &mut FormerLooks,
) -> Result<Vec<Owner>, DirectoryError> {
    let awaited = open.pending.awaited();
    let leases = open.directory.leases().await?;
    let mut pods = pods_of(open, &leases, pods, known).await?;
    if !open.place.is_one_store() {
        pods = unproven(pods, &leases);
    }
    let now = Instant::now();
    known.missed = missed(&known.missed, &leases, &pods, now);
    let gates = Gates {
        leases,
        pods,
        missed: known.missed.clone(),
    };
    Ok(open.pending.judge(awaited, &gates, now))
}

/// Every pod that may have a copy of the directory.
async fn pods_of(
    open: &OpenDirectory,
    leases: &Leases,
    pods: &GatePods,
    known: &mut FormerLooks,
) -> kube::Result<Vec<GatePod>> {
    let without_pod = |found: &[GatePod]| -> HashSet<String> {
        let uids = leases.gates.iter().map(|lease| &lease.uid);
        let has_none = |uid: &&String| found.iter().all(|pod| pod.uid != **uid);
        uids.filter(has_none).cloned().collect()
    };
    let store = open.place.gate_store.as_deref();
    let of_api = || -> Vec<GatePod> {
        let pods = pods.of(&open.api);
        let pods = pods.iter().filter_map(|pod| GatePod::of(pod, store));
        pods.collect()
    };
    let found = of_api();
    let is_known = leases.generation.is_some() && known.generation == leases.generation;
    if is_known && without_pod(&found).is_subset(&known.gone) {
        return Ok(found);
    }
    pods.caught_up(&open.api).await?;
    let found = of_api();
    known.gone = without_pod(&found);
    known.generation = leases.generation;
    Ok(found)
}
