//! 1 to 3: consistency of status, Secret and directory.

use std::collections::BTreeSet;

use serde_json::Value;
use water_domain::{KeyHash, Timestamp};
use water_keystore::{KeyState, Record};
use water_resources::api_key::{DeletionPolicy, RetiringKey};
use water_resources::{ApiKey, ApiKeyStatus};

use super::Violation;
use crate::operator::facts::Facts;
use crate::operator::objects::{current, name, owner, reported, shown, text_hash, uid};

/// Judges all facts; `now` is Redis' time.
pub fn declared(facts: &Facts, now: Timestamp) -> Vec<Violation> {
    let keys = facts.keys.iter();
    let living = keys.filter(|key| key.metadata.deletion_timestamp.is_none());
    let of_keys = living.flat_map(|key| {
        let synced = synced(facts, key, now);
        synced.into_iter().chain(secret(facts, key))
    });
    let unreadable = facts.unreadable.iter();
    let unreadable = unreadable.filter(|key| key["metadata"]["deletionTimestamp"].is_null());
    let unreadable = unreadable.filter_map(|key| unreported(facts, key, now));
    of_keys.chain(unreadable).chain(orphans(facts)).collect()
}

/// Judges an ApiKey by invariant 1.
fn synced(facts: &Facts, key: &ApiKey, now: Timestamp) -> Option<Violation> {
    let published = facts.published(uid(key));
    let held = &facts.held[uid(key)];
    let declared = named(key.status.as_ref(), now);
    let mut hashes = published.iter();
    let is_exact = published == declared
        && *held == declared
        && hashes.all(|hash| is_as_declared(facts, key, hash));
    let is_true = |aspect| shown(key, aspect).starts_with("True/");
    let is_wrong = if is_exact {
        // A Secret may block it.
        is_true("Accepted") && !is_true("Synced") && !is_true("Stalled")
    } else {
        is_true("Synced")
    };
    is_wrong.then(|| {
        let (name, synced) = (name(key), shown(key, "Synced"));
        let found = format!(
            "{name} is Synced={synced}, declares {declared:?}, the index holds {held:?} and the \
             directory {published:?}"
        );
        Violation::new(1, found)
    })
}

/// Judges by invariant 1 an ApiKey whose spec cannot be read: its status says so, and its earlier declaration
/// is kept.
fn unreported(facts: &Facts, key: &Value, now: Timestamp) -> Option<Violation> {
    let (metadata, status) = (&key["metadata"], &key["status"]);
    let status: Option<ApiKeyStatus> = serde_json::from_value(status.clone()).ok();
    let stalled = reported(metadata["generation"].as_i64(), status.as_ref(), "Stalled");
    let published = facts.published(metadata["uid"].as_str().unwrap_or_default());
    let declared = named(status.as_ref(), now);
    let is_reported = stalled == "True/Undecodable" && published == declared;
    (!is_reported).then(|| {
        let found = format!(
            "{} cannot be read and is Stalled={stalled}, declared {declared:?} before, and the \
             directory holds {published:?}",
            metadata["name"]
        );
        Violation::new(1, found)
    })
}

/// Returns the hashes that are current, announced or overlapping.
fn named(status: Option<&ApiKeyStatus>, now: Timestamp) -> BTreeSet<KeyHash> {
    let hashes = status.into_iter().flat_map(|status| {
        let previous = status.previous.iter();
        let overlapping = previous.filter(|previous| previous.retire_time > now);
        let overlapping = overlapping.map(|previous| &previous.issued);
        let issued = status.current.iter().chain(&status.unrevealed);
        issued.chain(overlapping).map(|issued| &issued.hash)
    });
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

/// Checks that the key ends as declared: a replaced one keeps its own end, and the time that the status names.
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

/// Judges the records by invariant 2.
fn orphans(facts: &Facts) -> impl Iterator<Item = Violation> {
    let unreadable = facts.unreadable.iter();
    let unreadable = unreadable.filter_map(|key| key["metadata"]["uid"].as_str());
    let living: BTreeSet<&str> = facts.keys.iter().map(uid).chain(unreadable).collect();
    facts.stored.iter().filter_map(move |(hash, stored)| {
        let owner = stored.owner.as_ref();
        let is_owned = owner.is_some_and(|owner| living.contains(&*owner.uid));
        let found = format!("{hash} is published for {owner:?}, which is gone");
        (!is_owned).then(|| Violation::new(2, found))
    })
}

/// Judges a Secret by invariant 3.
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
                let owners = secret.metadata.owner_references.iter().flatten();
                let is_ready = shown(key, "Ready").starts_with("True/");
                let goes = generated.deletion_policy == DeletionPolicy::Delete;
                // Kubernetes deletes one that has an owner with it.
                if !is_ready || (owners.count() > 0) == goes {
                    return None;
                }
                format!("its Secret goes with it: {}", !goes)
            }
            (text, current) => format!("its text hashes to {text:?}, current is {current:?}"),
        },
        secrets => format!("it has {} Secrets", secrets.len()),
    };
    Some(Violation::new(3, format!("{}: {found}", name(key))))
}
