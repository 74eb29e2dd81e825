//! The directory in a Redis that gates still read, although another one took its place.
//!
//! A rollout that moves the gates takes minutes, and a paused one has no end. Until the last of these pods
//! is gone, whatever the cluster declares is written here, too, under the term that this leadership has
//! here. It is never claimed again: both may be one Redis under two names, and the other directory's claim
//! ends this. A leader that begins meanwhile cannot write here: nothing names this Redis any more. Deletions
//! wait for these pods in any case.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use kube::{Resource, ResourceExt};
use tokio::time::{MissedTickBehavior, interval};
use tracing::info;
use water_domain::KeyHash;
use water_keystore::{Entry, Origin, Owner, Record, WriteError, Writer};

use super::duties::Duty;
use super::{DesiredState, DirectoryError, OpenDirectory};
use crate::context::Context;

/// Interval between two comparisons with the cluster.
const EVERY: Duration = Duration::from_secs(1);

/// Writes it for as long as a gate reads it, and nobody else has claimed it.
pub async fn follow(open: &OpenDirectory, context: &Context) {
    let Some(writer) = open.known().writer.clone() else {
        return;
    };
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Before Redis has answered, every gate may be one of them.
    let mut readers = gates(open, context);
    let mut has_answered = false;
    loop {
        ticks.tick().await;
        let leases = open.directory.leases().await;
        if let Ok(leases) = &leases {
            if !has_answered {
                readers.clear();
            }
            has_answered = true;
            readers.extend(leases.gates.iter().map(|lease| lease.uid.clone()));
        }
        let present = context.directories.get(&open.api);
        let present = present.filter(|present| present.place.store == open.place.store);
        let is_fenced = present
            .as_ref()
            .is_some_and(|present| present.was_claimed());
        if is_fenced || readers.is_disjoint(&gates(open, context)) {
            return;
        }
        let written = match leases {
            Ok(_) => write(open, &writer, context).await,
            Err(error) => Err(error.into()),
        };
        if written.as_ref().is_err_and(is_lost) {
            return;
        }
        // The directory that replaced this one in the same Redis reports its failures itself, and of a Redis that has
        // not answered no reader is known.
        if written.is_err() && (present.is_some() || !has_answered) {
            continue;
        }
        if open.note_duty(Duty::WriteFormer, &written, &context.metrics) {
            context.revisit_api(&open.api);
        }
        if let Ok(owners @ 1..) = written {
            info!(
                namespace = open.api.namespace,
                name = open.api.name,
                owners,
                "wrote the key directory in the former Redis, which gates still read"
            );
        }
    }
}

/// The uids of all pods of the WaterDataApi's gates.
fn gates(open: &OpenDirectory, context: &Context) -> HashSet<String> {
    let pods = context.gate_pods.for_api(&open.api);
    pods.iter().filter_map(ResourceExt::uid).collect()
}

/// Declares again what differs from the cluster; returns the number of these ApiKeys. Keys whose ApiKey is gone stay:
/// only a sweep may take them for orphans.
async fn write(
    open: &OpenDirectory,
    writer: &Writer,
    context: &Context,
) -> Result<usize, DirectoryError> {
    let plans = context.plans(&open.api, open.known_plans().await?);
    writer.set_plans(&plans).await?;
    let stored = open.stored().await?;
    let namespaces = context.namespaces(&open.api).await?;
    let mut differing = context.differing(&open.api, &namespaces, &stored);
    if differing.is_empty() {
        return Ok(0);
    }
    let keys = context.keys.state();
    let living: HashSet<&str> = keys
        .iter()
        .filter_map(|key| key.meta().uid.as_deref())
        .collect();
    differing.retain(|owner| living.contains(&*owner.uid));
    let mut declared: HashMap<Box<str>, Vec<Entry>> = HashMap::new();
    for entry in context.entries(&open.api, &namespaces, &stored) {
        let of_owner = declared.entry(entry.owner.uid.clone()).or_default();
        of_owner.push(entry);
    }
    let (mut written, mut failed) = (0, None);
    for owner in &differing {
        let entries = declared.remove(&owner.uid).unwrap_or_default();
        match declare(open, writer, owner, entries).await {
            Ok(is_whole) => written += usize::from(is_whole),
            Err(error) if is_lost(&error) => return Err(error),
            // The others are not kept by it.
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(written), Err)
}

/// Declares the keys of an owner without tombstones, which the other Redis has. Returns whether no hash was refused.
async fn declare(
    open: &OpenDirectory,
    writer: &Writer,
    owner: &Owner,
    entries: Vec<Entry>,
) -> Result<bool, DirectoryError> {
    let origin = entries.first().map(|entry| entry.origin.clone());
    let origin = origin.unwrap_or(Origin::Generated);
    let snapshot = open
        .directory
        .owner_snapshot(&owner.uid, &origin, &[])
        .await?;
    let records: BTreeMap<KeyHash, Record> = entries
        .into_iter()
        .map(|entry| (entry.hash, entry.record))
        .collect();
    let declaration = snapshot.declaration(owner.clone(), origin, records);
    let declared = writer.declare(&declaration).await?;
    Ok(declared.refused.is_empty())
}

/// Checks whether the term or the data is lost, so that the directory would have to be claimed again.
fn is_lost(error: &DirectoryError) -> bool {
    use WriteError::{Fenced, Interrupted, Owned, Schema, Unverified, WentBack, Wiped};
    let DirectoryError::Write(error) = error else {
        return false;
    };
    matches!(
        error,
        Fenced { .. } | Owned { .. } | Schema { .. } | Wiped | Unverified | WentBack | Interrupted
    )
}
