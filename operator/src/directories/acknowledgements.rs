//! Checks of the gates for as long as a change waits for them.
//!
//! Their pods come from a watch, which may be behind. A gate writes its lease before it reads the directory, so a pod
//! that the watch has not reported yet shows by its lease, unless Redis has lost that, which begins a new generation.
//! Only then, and when a lease's pod is unknown, the API server is asked.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use water_keystore::{Leases, Owner};

use super::duties::{Duty, within};
use super::gates::{GatePod, Gates, MissingLeases, missed, unlisted, unproven, without_pod};
use super::{DirectoryError, OpenDirectory};
use crate::context::Context;
use crate::gate_pods::{GatePods, Knowledge};

/// Pause between a write and the first check: a gate on a healthy Redis has acknowledged by then.
const FIRST: Duration = Duration::from_millis(15);
/// Longest pause between two checks.
const LONGEST: Duration = Duration::from_millis(500);
/// Time limit of a check.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// Results of earlier checks.
#[derive(Default)]
struct FormerLooks {
    /// Missing leases so far: a gate that is stuck is waited for once, and not by each change.
    missed: MissingLeases,
    /// The generation in which the API server was last asked for the pods.
    generation: Option<u64>,
    /// Uids of leases whose pods are gone.
    gone: HashSet<String>,
}

/// Pods that may have a copy of the directory.
struct Pods {
    /// Pods that the watch shows.
    shown: Vec<GatePod>,
    /// See [`unlisted`].
    unlisted: Vec<GatePod>,
}

/// Checks the gates while a declaration waits, often at first. A pass over each ApiKey follows whose declaration has
/// come into force.
pub async fn follow(open: &OpenDirectory, context: &Context) -> Infallible {
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
            let look = look(open, &context.gate_pods, &mut known);
            let looked = within(LOOK_WITHIN, look).await;
            open.note_duty(Duty::AskGates, &looked, &context.metrics);
            for owner in looked.iter().flatten() {
                context.revisit_owner(owner);
            }
        }
    }
}

/// Checks the gates once: leases after the write, pods after the leases.
async fn look(
    open: &OpenDirectory,
    pods: &GatePods,
    known: &mut FormerLooks,
) -> Result<Vec<Owner>, DirectoryError> {
    let awaited = open.pending.awaited();
    let leases = open.directory.leases().await?;
    let Pods {
        shown: mut pods,
        unlisted,
    } = pods_of(open, &leases, pods, known).await?;
    if !open.place.is_one_store() {
        pods = unproven(pods, &leases);
    }
    pods.extend(unlisted);
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
) -> kube::Result<Pods> {
    let store = open.place.gate_store.as_deref();
    let of_api = || -> Vec<GatePod> {
        let pods = pods.for_api(&open.api);
        let pods = pods.iter().filter_map(|pod| GatePod::read(pod, store));
        pods.collect()
    };
    let shown = of_api();
    let was_listed = leases.generation.is_some() && known.generation == leases.generation;
    let is_gone = |uid: &String| known.gone.contains(uid) || pods.has_ended(uid);
    if was_listed && without_pod(&shown, leases).iter().all(is_gone) {
        let unlisted = Vec::new();
        return Ok(Pods { shown, unlisted });
    }
    let knowledge = pods.caught_up(&open.api).await?;
    let shown = of_api();
    let unlisted = match knowledge {
        Knowledge::Complete => {
            known.gone = without_pod(&shown, leases);
            known.generation = leases.generation;
            Vec::new()
        }
        Knowledge::LastWord => {
            let gone = without_pod(&shown, leases).into_iter().filter(is_gone);
            unlisted(&shown, &gone.collect(), leases, was_listed)
        }
    };
    Ok(Pods { shown, unlisted })
}
