//! The sweep: once a minute a directory is compared with the ApiKeys of the cluster.
//!
//! An ApiKey whose finalizer was stripped leaves keys without an owner, which no pass sees. Keys whose
//! ApiKey was missing in two sweeps in a row are withdrawn. Where a record differs from what its ApiKey
//! declares, a pass over that ApiKey follows. One sweep removes a fifth of the owners at most, so that
//! a mistaken list of ApiKeys does not end most customers' access. Keys that two directories hold stay in the one that
//! their ApiKey names.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::time::Duration;

use kube::Api;
use kube::Resource;
use kube::api::ObjectMeta;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tracing::{info, warn};
use water_domain::{Fault, Timestamp};
use water_keystore::{Entry, Origin, Owner, WriteError};
use water_operator_core::sweep::{self, Sweep};
use water_resources::ApiKey;
use water_resources::api_key::ApiName;

use super::duties::Duty;
use super::{CacheEpoch, DesiredState, DirectoryError, OpenDirectory};
use crate::backoff::{chance, spread};
use crate::client::watched;
use crate::clock;
use crate::config::Scope;
use crate::context::Context;
use crate::events::Transition;
use crate::keys::changes;
use crate::watches::listing;

/// Interval between two sweeps.
const EVERY: Duration = Duration::from_secs(60);
/// Time until the first sweep, soon after the directory was opened.
const FIRST: Duration = Duration::from_secs(10);
/// Sweeps between two searches for what is 90 days old: an hour. A search that fails is repeated after the next sweep.
const FORGET_EVERY: u64 = 60;
/// Largest difference of two clocks that may both be right.
const CLOCKS_APART: Duration = Duration::from_secs(60);

/// Annotation that allows one larger removal: at most so many ApiKeys.
pub const ALLOW: &str = "waterdata.dev/sweep-up-to";

/// Sweeps once a minute for as long as the directory is open.
pub async fn follow(open: &OpenDirectory, context: &Context) -> Infallible {
    // Directories of one operator are not swept at the same moments.
    let first = Instant::now() + spread(FIRST, chance());
    let mut ticks = interval_at(first, EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut orphans = HashSet::new();
    let (mut sweeps, mut forgets_from) = (0, 0);
    loop {
        ticks.tick().await;
        if !open.was_claimed() {
            continue;
        }
        // Counted here, so that a sweep that breaks off reports what it has removed.
        let mut withdrawals = Withdrawals::default();
        let swept = sweep(open, context, &orphans, &mut withdrawals).await;
        tell(open, withdrawals.removed, context);
        let swept = swept.and_then(|seen| {
            orphans = seen;
            withdrawals.failed.map_or(Ok(()), Err)
        });
        context.metrics.swept(swept.is_ok());
        let mut is_news = open.note_duty(Duty::Sweep, &swept, &context.metrics);
        if forgets_from <= sweeps {
            let forgotten = forget_old(open, context, clock::now()).await;
            if forgotten.is_ok() {
                forgets_from = sweeps + FORGET_EVERY;
            }
            is_news |= open.note_duty(Duty::Forget, &forgotten, &context.metrics);
        }
        if is_news {
            context.revisit_api(&open.api);
        }
        sweeps += 1;
    }
}

/// Forgets what is 90 days old, unless Redis' clock is wrong.
async fn forget_old(
    open: &OpenDirectory,
    context: &Context,
    now: Timestamp,
) -> Result<(), DirectoryError> {
    let theirs = open.directory.leases().await?.now;
    let apart = Duration::from_millis(theirs.as_millis().abs_diff(now.as_millis()));
    if apart > CLOCKS_APART {
        return Err(DirectoryError::ClocksApart);
    }
    context.directories.forget_old(open).await
}

/// Withdrawals of one sweep.
#[derive(Default)]
struct Withdrawals {
    /// Number of owners whose ApiKeys are gone and whose keys were withdrawn.
    removed: u64,
    /// Failure of the first of them, by uid, for a cause that stays: a condition reports the same one after each sweep.
    failed: Option<DirectoryError>,
}

impl Withdrawals {
    /// Returns whether the keys of an owner were withdrawn. One for which that fails for good keeps none of the others
    /// waiting; any other failure ends the sweep. The next one tries it again.
    fn note(
        &mut self,
        outcome: Result<(), DirectoryError>,
        owner: &Owner,
        cause: &'static str,
    ) -> Result<bool, DirectoryError> {
        match outcome {
            Ok(()) => Ok(true),
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                warn!(
                    namespace = %owner.namespace, name = %owner.name, error = %error,
                    "the keys of an ApiKey that {cause} could not be withdrawn"
                );
                self.failed.get_or_insert(error);
                Ok(false)
            }
        }
    }
}

/// Returns the owners of which this sweep has seen no ApiKey, and notes those whose keys it has withdrawn, or could
/// not.
async fn sweep(
    open: &OpenDirectory,
    context: &Context,
    before: &HashSet<Box<str>>,
    withdrawals: &mut Withdrawals,
) -> Result<HashSet<Box<str>>, DirectoryError> {
    let epoch = context.directories.epoch();
    // The directory first: a key that is declared in between has an ApiKey that the list shows.
    let stored = open.stored().await?;
    // Asked for afresh: no watch's memory decides on a removal.
    let keys: Api<ApiKey> = watched(&context.client, context.scope, &context.namespace);
    let living = listing::uids(&keys).await?;
    let is_in_view = |owner: &Owner| is_in_view(context.scope, &context.namespace, owner);
    let owners: Vec<&Owner> = owners_by_uid(&stored).into_values().collect();
    let Sweep { orphans, removable } = sweep::sweep(
        &owners,
        |owner| !is_in_view(owner) || living.contains(&*owner.uid),
        |owner| before.contains(&owner.uid),
        allowance(open, context),
    );
    // Not needed any more: the comparison below takes the most memory of all.
    drop(living);
    let held_back = removable.as_ref().err().copied();
    if let Ok(removable) = removable {
        for owner in removable {
            let withdrawn = withdraw(open, owner, epoch, context).await;
            if withdrawals.note(withdrawn, owner, "is gone")? {
                withdrawals.removed += 1;
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
    withdraw_doubles(open, &stored, epoch, withdrawals, context).await?;
    Ok(orphans.into_iter().map(|owner| owner.uid.clone()).collect())
}

/// Owners of what is stored, always in one order.
fn owners_by_uid(stored: &[Entry]) -> BTreeMap<&str, &Owner> {
    let owners = stored.iter().map(|entry| (&*entry.owner.uid, &entry.owner));
    owners.collect()
}

/// Whether an operator of that scope and namespace sees the ApiKey of an owner: what it does not see is not gone.
fn is_in_view(scope: Scope, namespace: &str, owner: &Owner) -> bool {
    scope == Scope::Cluster || *owner.namespace == *namespace
}

/// Number of further ApiKeys that the WaterDataApi's annotation allows.
fn allowance(open: &OpenDirectory, context: &Context) -> usize {
    let api = context.decoded_api(&open.api);
    api.map_or(0, |api| allowed_by(api.meta()))
}

fn allowed_by(meta: &ObjectMeta) -> usize {
    let annotations = meta.annotations.as_ref();
    let annotation = annotations.and_then(|all| all.get(ALLOW));
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
        .owner_snapshot(open, epoch, &owner.uid, &origin, &[])
        .await?;
    let declaration = snapshot.declaration(owner.clone(), origin, BTreeMap::new());
    if !snapshot.is_gone {
        let declared = directories.declare(open, &writer, &declaration).await;
        if let Some(declared) = unless_gone(declared)? {
            changes::told(&snapshot.records, &declaration, &declared.refused);
        }
    }
    open.forget(&owner.uid);
    Ok(())
}

/// Outcome of a declaration; `None`: the ApiKey was deleted a moment ago, so that nothing is held of it any more.
fn unless_gone<T>(declared: Result<T, DirectoryError>) -> Result<Option<T>, DirectoryError> {
    match declared {
        Err(DirectoryError::Write(WriteError::OwnerGone)) => Ok(None),
        declared => declared.map(Some),
    }
}

/// Withdraws the keys of ApiKeys that name another WaterDataApi, whose directory holds them, too: a rebuild has
/// published them there by a status that lied. What passes restrict there would never reach them here.
async fn withdraw_doubles(
    open: &OpenDirectory,
    stored: &[Entry],
    epoch: CacheEpoch,
    withdrawals: &mut Withdrawals,
    context: &Context,
) -> Result<(), DirectoryError> {
    let owners = owners_by_uid(stored);
    let mut keys = context.keys.state();
    keys.sort_unstable_by(|one, other| one.meta().uid.cmp(&other.meta().uid));
    for key in keys {
        let Ok(watched) = &key.0 else {
            continue;
        };
        let newer = context.memory.newer(watched);
        let key = newer.as_deref().unwrap_or(watched);
        let uid = key.meta().uid.as_deref().unwrap_or_default();
        let Some((owner, named)) = owners.get(uid).zip(named_elsewhere(key, &open.api)) else {
            continue;
        };
        let Some(named) = context.directories.get(&named) else {
            continue;
        };
        // One that does not answer may hold nothing.
        if !matches!(context.directories.holds(&named, uid).await, Ok(true)) {
            continue;
        }
        let withdrawn = withdraw(open, owner, epoch, context).await;
        if withdrawals.note(withdrawn, owner, "another key directory holds, too,")? {
            warn!(
                namespace = %owner.namespace, name = %owner.name, api = open.api.name,
                "withdrew the keys of an ApiKey that another key directory holds, too"
            );
        }
    }
    Ok(())
}

/// The WaterDataApi where a key was issued, if its ApiKey names this one nowhere.
fn named_elsewhere(key: &ApiKey, here: &ApiName) -> Option<ApiName> {
    key.issued_at().filter(|_| !key.may_be_at(here))
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

    fn annotated(annotation: &str, value: &str) -> ObjectMeta {
        ObjectMeta {
            annotations: Some([(annotation.to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_withdrawal_that_fails_for_good_fails_the_sweep_and_keeps_no_other_waiting() {
        let owner = Owner {
            uid: "uid".into(),
            namespace: "team".into(),
            name: "acme".into(),
        };
        let mut withdrawals = Withdrawals::default();
        let mut note = |outcome| withdrawals.note(outcome, &owner, "is gone");
        let too_many = DirectoryError::Write(WriteError::TooManyHashes);
        assert!(!note(Err(too_many)).unwrap());
        let another = DirectoryError::Write(WriteError::Schema { stored: 9 });
        assert!(!note(Err(another)).unwrap());
        assert!(note(Ok(())).unwrap());
        assert!(note(Err(DirectoryError::NotWhole)).is_err());
        let failed = withdrawals.failed.unwrap();
        assert_eq!(
            failed.to_string(),
            "the ApiKey has too many keys",
            "the first"
        );
    }

    #[test]
    fn an_apikey_that_is_deleted_during_a_sweep_has_no_keys_to_withdraw() {
        let refused = |error| unless_gone::<()>(Err(DirectoryError::Write(error)));
        assert!(refused(WriteError::OwnerGone).unwrap().is_none());
        assert!(refused(WriteError::TooManyHashes).is_err());
        assert!(unless_gone(Ok(())).unwrap().is_some());
    }

    #[test]
    fn an_operator_of_one_namespace_sees_no_owner_of_another_one() {
        let owner = Owner {
            uid: "uid".into(),
            namespace: "team".into(),
            name: "acme".into(),
        };
        let sees = |scope, namespace| is_in_view(scope, namespace, &owner);
        assert!(sees(Scope::Cluster, "water") && sees(Scope::Namespaced, "team"));
        assert!(!sees(Scope::Namespaced, "water"));
    }

    #[test]
    fn no_annotation_or_no_number_allows_nothing_more() {
        assert_eq!(allowed_by(&annotated(ALLOW, "12")), 12);
        assert_eq!(allowed_by(&ObjectMeta::default()), 0);
        assert_eq!(allowed_by(&annotated("waterdata.dev/take-over", "12")), 0);
        for value in ["", "all", "-1", "1.5", "99999999999999999999"] {
            assert_eq!(allowed_by(&annotated(ALLOW, value)), 0, "{value}");
        }
    }
}
