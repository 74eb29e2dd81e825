//! The directory in a Redis that gates still read, although another one took its place.
//!
//! A rollout that moves the gates takes minutes, and a paused one has no end. Until the last of these pods
//! is gone, whatever the cluster declares is written here, too. A leader that begins meanwhile cannot do
//! that: nothing names this Redis any more. Deletions wait for these pods in any case.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use kube::ResourceExt;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{debug, info};
use water_domain::KeyHash;
use water_keystore::{Declaration, Entry, Origin, Owner, Record};

use super::sweep::SweepError;
use super::{DirectoryError, Moment, OpenDirectory, Source};
use crate::context::Context;

/// Between two comparisons with the cluster.
const EVERY: Duration = Duration::from_secs(1);
/// A comparison is given up after this long.
const WITHIN: Duration = Duration::from_secs(15);

/// Writes it for as long as a gate reads it, unless it takes the other one's place again.
pub async fn follow(open: &OpenDirectory, context: &Context) {
    if !open.was_claimed() {
        return;
    }
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Before Redis has answered, every gate may be one of them.
    let mut readers = gates(open, context);
    let mut has_answered = false;
    loop {
        ticks.tick().await;
        if let Ok(leases) = open.directory.leases().await {
            if !has_answered {
                readers.clear();
            }
            has_answered = true;
            readers.extend(leases.gates.into_iter().map(|lease| lease.uid));
        }
        if readers.is_disjoint(&gates(open, context)) || is_superseded(open, context) {
            return;
        }
        let written = timeout(WITHIN, write(open, context)).await;
        match written {
            Ok(Ok(0)) => {}
            Ok(Ok(owners)) => info!(
                namespace = open.api.namespace,
                name = open.api.name,
                owners,
                "wrote the key directory in the former Redis, which gates still read"
            ),
            Ok(Err(error)) => debug!(error = %error, "cannot write the former Redis"),
            Err(_) => debug!("writing the former Redis took longer than {WITHIN:?}"),
        }
    }
}

/// The uids of all pods of the WaterDataApi's gates.
fn gates(open: &OpenDirectory, context: &Context) -> HashSet<String> {
    let pods = context.gate_pods.of(&open.api);
    pods.iter().filter_map(ResourceExt::uid).collect()
}

/// Whether its Redis is in use again, or no directory is any more.
fn is_superseded(open: &OpenDirectory, context: &Context) -> bool {
    let present = context.directories.get(&open.api);
    present.is_none_or(|present| present.store() == open.store())
}

/// Declares anew what differs from the cluster. Answers for how many ApiKeys.
async fn write(open: &OpenDirectory, context: &Context) -> Result<usize, SweepError> {
    let read = context.directories.moment();
    context.directories.set_plans(open, context).await?;
    let stored = open.former().await.map_err(DirectoryError::from)?;
    let namespaces = context.namespaces(&open.api).await?;
    let differing = context.differing(&open.api, &namespaces, &stored);
    if differing.is_empty() {
        return Ok(0);
    }
    let mut declared: HashMap<Box<str>, Vec<Entry>> = HashMap::new();
    for entry in context.entries(&open.api, &namespaces, &stored) {
        let of_owner = declared.entry(entry.owner.uid.clone()).or_default();
        of_owner.push(entry);
    }
    for owner in &differing {
        let entries = declared.remove(&owner.uid).unwrap_or_default();
        declare(open, owner, entries, read, context).await?;
    }
    Ok(differing.len())
}

/// Without tombstones, which the other Redis has.
async fn declare(
    open: &OpenDirectory,
    owner: &Owner,
    entries: Vec<Entry>,
    read: Moment,
    context: &Context,
) -> Result<(), DirectoryError> {
    let directories = &context.directories;
    let origin = entries.first().map(|entry| entry.origin.clone());
    let origin = origin.unwrap_or(Origin::Generated);
    let sight = directories.sight(open, context, read, &owner.uid, &origin, &[]);
    let (writer, sight, _) = sight.await?;
    let records: BTreeMap<KeyHash, Record> = entries
        .into_iter()
        .map(|entry| (entry.hash, entry.record))
        .collect();
    let is_undeclared = |hash: &&KeyHash| !records.contains_key(hash);
    let declaration = Declaration {
        owner: owner.clone(),
        number: sight.number,
        withdrawn: sight
            .records
            .keys()
            .filter(is_undeclared)
            .copied()
            .collect(),
        records,
        revoked: BTreeSet::new(),
        reinstated: BTreeMap::new(),
        origin,
        is_last: false,
    };
    directories.declare(open, &writer, &declaration).await?;
    Ok(())
}
