//! 1 to 3: what status, Secret and directory say of one another.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use water_domain::{KeyHash, Timestamp};
use water_keystore::{KeyState, Record};
use water_resources::api_key::{DeletionPolicy, RetiringKey};
use water_resources::{ApiKey, ApiKeyStatus};

use super::violation::Violation;
use crate::facts::{Facts, name, uid};
use crate::objects::{RawKey, current, owner, shown, text_hash, told};

/// Looks at everything that stands; `now` is Redis' time.
pub fn declared(facts: &Facts, now: Timestamp) -> Vec<Violation> {
    let living = facts.keys.iter();
    let living = living.filter(|key| key.metadata.deletion_timestamp.is_none());
    let of_keys = living.flat_map(|key| {
        let synced = synced(facts, key, now);
        synced.into_iter().chain(secret(facts, key))
    });
    let unreadable = facts.unreadable.iter();
    let unreadable = unreadable.filter(|key| key.metadata.deletion_timestamp.is_none());
    let unreadable = unreadable.filter_map(|key| untold(facts, key, now));
    of_keys.chain(unreadable).chain(orphans(facts)).collect()
}

/// 1
fn synced(facts: &Facts, key: &ApiKey, now: Timestamp) -> Option<Violation> {
    let published = facts.published(uid(key));
    let held = &facts.held[uid(key)];
    let declared = named(key.status.as_ref(), now);
    let is_exact = published == declared
        && *held == declared
        && published
            .iter()
            .all(|hash| is_as_declared(facts, key, hash));
    // What stands in the way may be a Secret.
    let is_hindered = shown(key, "Stalled").starts_with("True/");
    let is_synced = shown(key, "Synced").starts_with("True/");
    let is_accepted = shown(key, "Accepted").starts_with("True/");
    let found = || {
        let (name, synced) = (name(key), shown(key, "Synced"));
        format!(
            "{name} is Synced={synced}, declares {declared:?}, the index holds {held:?} and the \
             directory {published:?}"
        )
    };
    let is_wrong = if is_exact {
        is_accepted && !is_synced && !is_hindered
    } else {
        is_synced
    };
    is_wrong.then(|| Violation::of(1, found()))
}

/// 1, of an ApiKey whose spec cannot be read: it is told of, and what it declared before stands.
fn untold(facts: &Facts, key: &RawKey, now: Timestamp) -> Option<Violation> {
    let uid = key.metadata.uid.as_deref().unwrap_or_default();
    let stalled = told(key.metadata.generation, key.status.as_ref(), "Stalled");
    let published = facts.published(uid);
    let declared = named(key.status.as_ref(), now);
    let is_told = stalled == "True/Undecodable" && published == declared;
    let found = || {
        format!(
            "{:?} cannot be read and is Stalled={stalled}, declared {declared:?} before, and the \
             directory holds {published:?}",
            key.metadata.name
        )
    };
    (!is_told).then(|| Violation::of(1, found()))
}

/// Current, announced and overlapping.
fn named(status: Option<&ApiKeyStatus>, now: Timestamp) -> BTreeSet<KeyHash> {
    let Some(status) = status else {
        return BTreeSet::new();
    };
    let current = status.current.iter().map(|issued| &issued.hash);
    let announced = status.unrevealed.iter().map(|issued| &issued.hash);
    let overlapping = status.previous.iter();
    let overlapping = overlapping.filter(|previous| previous.retire_time > now);
    let overlapping = overlapping.map(|previous| &previous.issued.hash);
    let hashes = current.chain(announced).chain(overlapping);
    hashes.filter_map(|hash| hash.parse().ok()).collect()
}

fn is_as_declared(facts: &Facts, key: &ApiKey, hash: &KeyHash) -> bool {
    let previous = key.status.as_ref();
    let previous = previous.and_then(|status| status.previous.as_ref());
    let previous = previous.filter(|previous| previous.issued.hash == hash.to_string());
    let is_so = |record: &Record| {
        let is_suspended = record.state == KeyState::Suspended;
        record.plan == key.spec.plan
            && record.account == key.spec.account_id
            && is_suspended == key.spec.suspend
            && record.not_before == key.spec.not_before
            && ends_as_declared(record, key.spec.expiration_time, previous)
    };
    let stored = facts.stored.get(hash);
    stored.is_some_and(|stored| stored.record.as_ref().is_some_and(is_so))
}

/// A replaced key keeps an end of its own, and the time that the status names.
fn ends_as_declared(
    record: &Record,
    declared: Option<Timestamp>,
    previous: Option<&RetiringKey>,
) -> bool {
    let Some(previous) = previous else {
        return record.expires == declared && record.retires.is_none();
    };
    let is_earlier = match (record.expires, declared) {
        (Some(own), Some(declared)) => own <= declared,
        (own, declared) => own.is_some() || declared.is_none(),
    };
    is_earlier && record.retires == Some(previous.retire_time)
}

/// 2
fn orphans(facts: &Facts) -> impl Iterator<Item = Violation> {
    let unreadable = facts.unreadable.iter();
    let unreadable = unreadable.filter_map(|key| key.metadata.uid.as_deref());
    let living: BTreeSet<&str> = facts.keys.iter().map(uid).chain(unreadable).collect();
    let orphans = facts.stored.iter().filter(move |(_, stored)| {
        let owner = stored.owner.as_ref();
        !owner.is_some_and(|owner| living.contains(&*owner.uid))
    });
    orphans.map(|(hash, stored)| {
        let owner = &stored.owner;
        Violation::of(
            2,
            format!("{hash} is published for {owner:?}, which is gone"),
        )
    })
}

/// 3
fn secret(facts: &Facts, key: &ApiKey) -> Option<Violation> {
    let generated = key.spec.material.generated.as_ref()?;
    if !shown(key, "SecretReady").starts_with("True/") {
        return None;
    }
    let secrets = facts.secrets.iter();
    let own: Vec<_> = secrets
        .filter(|secret| owner(secret) == Some(uid(key)))
        .collect();
    let found = match own.as_slice() {
        [secret] => match (text_hash(secret), current(key)) {
            (Ok(text), Ok(current)) if text == current => {
                let is_ready = shown(key, "Ready").starts_with("True/");
                let goes = generated.deletion_policy == DeletionPolicy::Delete;
                if !is_ready || has_owners(secret) == goes {
                    return None;
                }
                format!("its Secret goes with it: {}", !goes)
            }
            (text, current) => format!("its text hashes to {text:?}, current is {current:?}"),
        },
        secrets => format!("it has {} Secrets", secrets.len()),
    };
    Some(Violation::of(3, format!("{}: {found}", name(key))))
}

/// Whether Kubernetes deletes it with its ApiKey.
fn has_owners(secret: &Secret) -> bool {
    let owners = secret.metadata.owner_references.as_ref();
    owners.is_some_and(|owners| !owners.is_empty())
}
