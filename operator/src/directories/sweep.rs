//! The sweep: once a minute a directory is compared with the ApiKeys of the cluster.
//!
//! An ApiKey whose finalizer was stripped leaves keys without an owner, which no pass sees. Keys whose
//! ApiKey was missing in two sweeps in a row are withdrawn. Where a record differs from what its ApiKey
//! declares, a pass over that ApiKey follows. One sweep removes a fifth of the owners at most, so that
//! a mistaken list of ApiKeys does not end most customers' access.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::time::Duration;

use kube::Api;
use kube::Resource;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tracing::{debug, info, warn};
use water_domain::Fault;
use water_keystore::{Declaration, Origin, Owner};
use water_resources::ApiKey;

use super::{CacheEpoch, DesiredState, DirectoryError, OpenDirectory};
use crate::backoff::{chance, spread};
use crate::client::watched;
use crate::config::Scope;
use crate::context::Context;
use crate::events::Transition;
use crate::keys::changes;
use crate::watches::listing;

/// Between two sweeps.
const EVERY: Duration = Duration::from_secs(60);
/// The first one, soon after the directory was opened.
const FIRST: Duration = Duration::from_secs(10);
/// A sweep is given up after this long.
const WITHIN: Duration = Duration::from_secs(45);
/// What is 90 days old is looked for at every so many sweeps: once an hour.
const FORGET_EVERY: u64 = 60;
/// So many owners may be removed at once, however few there are.
const ALWAYS_ALLOWED: usize = 5;
/// Or this part of all: a fifth.
const ALLOWED_PART: usize = 5;

/// Allows one larger removal: at most so many ApiKeys.
pub const ALLOW: &str = "waterdata.dev/sweep-up-to";

/// Sweeps once a minute for as long as the directory is open.
pub async fn follow(open: &OpenDirectory, context: &Context) -> Infallible {
    // Directories of one operator are not swept at the same moments.
    let first = Instant::now() + spread(FIRST, chance());
    let mut ticks = interval_at(first, EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut orphans = HashSet::new();
    let mut sweeps = 0;
    let mut fails = false;
    loop {
        ticks.tick().await;
        if !open.was_claimed() {
            continue;
        }
        // Counted here, so that a sweep that breaks off tells what it has removed.
        let mut removed = 0;
        let swept = timeout(WITHIN, sweep(open, context, &orphans, &mut removed)).await;
        let swept = swept.map_err(|_| format!("it took longer than {WITHIN:?}"));
        let swept = swept.and_then(|swept| swept.map_err(|error| error.to_string()));
        tell(open, removed, context);
        context.metrics.swept(swept.is_ok());
        let failed_before = std::mem::replace(&mut fails, swept.is_err());
        match swept {
            Ok(found) => orphans = found,
            Err(error) if failed_before => debug!(error, "the sweep fails still"),
            Err(error) => warn!(
                namespace = open.api.namespace,
                name = open.api.name,
                error,
                "the sweep of the key directory failed: keys whose ApiKeys were deleted without their finalizer \
                 work until it succeeds"
            ),
        }
        if sweeps % FORGET_EVERY == 0 {
            match timeout(WITHIN, context.directories.forget_old(open, context)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(error = %error, "cannot forget what is 90 days old"),
                Err(_) => debug!("forgetting what is 90 days old took longer than {WITHIN:?}"),
            }
        }
        sweeps += 1;
    }
}

/// Returns the owners of which this sweep has seen no ApiKey, and counts in `removed` those whose keys it
/// has withdrawn.
async fn sweep(
    open: &OpenDirectory,
    context: &Context,
    before: &HashSet<Box<str>>,
    removed: &mut u64,
) -> Result<HashSet<Box<str>>, DirectoryError> {
    let epoch = context.directories.epoch();
    // The directory first: a key that is declared in between has an ApiKey that the list shows.
    let stored = open.stored().await?;
    // Asked for afresh: no watch's memory decides on a removal.
    let keys: Api<ApiKey> = watched(&context.client, context.scope, &context.namespace);
    let living = listing::uids(&keys).await?;
    let owners: HashMap<&str, &Owner> = stored
        .iter()
        .map(|entry| (&*entry.owner.uid, &entry.owner))
        .collect();
    let is_in_view =
        |owner: &Owner| context.scope == Scope::Cluster || *owner.namespace == *context.namespace;
    let orphans: Vec<&Owner> = owners
        .values()
        .filter(|owner| is_in_view(owner) && !living.contains(&*owner.uid))
        .copied()
        .collect();
    // Not needed any more: the comparison below takes the most memory of all.
    drop(living);
    let removable: Vec<&Owner> = orphans
        .iter()
        .filter(|owner| before.contains(&owner.uid))
        .copied()
        .collect();
    let allowed = allowed(owners.len(), allowance(open, context));
    let held_back = (removable.len() > allowed).then_some(removable.len());
    if held_back.is_none() {
        for owner in &removable {
            match withdraw(open, owner, epoch, context).await {
                Ok(()) => *removed += 1,
                Err(error) if error.is_transient() => return Err(error),
                // The others are not kept by it; the next sweep tries it again.
                Err(error) => warn!(
                    namespace = %owner.namespace, name = %owner.name, error = %error,
                    "the keys of an ApiKey that is gone could not be withdrawn"
                ),
            }
        }
    }
    let before = std::mem::replace(&mut open.known().held_back, held_back);
    if before != held_back {
        context.revisit_api(&open.api);
    }
    let namespaces = context.namespaces(&open.api).await?;
    for owner in context.differing(&open.api, &namespaces, &stored) {
        context.revisit_owner(&owner);
    }
    Ok(orphans.into_iter().map(|owner| owner.uid.clone()).collect())
}

/// How many owners one sweep may remove.
fn allowed(owners: usize, allowance: usize) -> usize {
    (owners / ALLOWED_PART).max(ALWAYS_ALLOWED).max(allowance)
}

/// What the WaterDataApi's annotation allows beyond that.
fn allowance(open: &OpenDirectory, context: &Context) -> usize {
    let Some(api) = context.decoded_api(&open.api) else {
        return 0;
    };
    let annotation = api
        .meta()
        .annotations
        .as_ref()
        .and_then(|all| all.get(ALLOW));
    annotation.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Takes away what is held of an owner. Without a tombstone: a backup may bring its ApiKey back.
async fn withdraw(
    open: &OpenDirectory,
    owner: &Owner,
    epoch: CacheEpoch,
    context: &Context,
) -> Result<(), DirectoryError> {
    let directories = &context.directories;
    let origin = Origin::Generated;
    let (writer, snapshot, _) = directories
        .owner_snapshot(open, context, epoch, &owner.uid, &origin, &[])
        .await?;
    let declaration = Declaration {
        owner: owner.clone(),
        number: snapshot.number,
        records: BTreeMap::new(),
        withdrawn: snapshot.records.keys().copied().collect(),
        revoked: BTreeSet::new(),
        reinstated: BTreeMap::new(),
        origin,
        is_last: false,
    };
    if !snapshot.is_gone {
        let declared = directories.declare(open, &writer, &declaration).await?;
        changes::told(&snapshot.records, &declaration, &declared.refused);
    }
    open.forget(&owner.uid);
    Ok(())
}

fn tell(open: &OpenDirectory, removed: u64, context: &Context) {
    if removed == 0 {
        return;
    }
    context.metrics.swept_owners.inc_by(removed);
    info!(
        namespace = open.api.namespace,
        name = open.api.name,
        removed,
        "swept the key directory"
    );
    if let Some(api) = context.decoded_api(&open.api) {
        let note = format!(
            "withdrew the keys of {removed} ApiKeys that are gone without having been revoked"
        );
        context.events.report(
            &api.object_ref(&()),
            &[Transition::warning("KeysSwept", note)],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_may_go_at_once_or_five_or_what_is_allowed() {
        assert_eq!(allowed(0, 0), 5);
        assert_eq!(allowed(29, 0), 5);
        assert_eq!(allowed(1000, 0), 200);
        assert_eq!(allowed(1000, 700), 700);
    }
}
