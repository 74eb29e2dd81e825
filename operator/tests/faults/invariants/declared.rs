//! 1 to 3: what status, Secret and directory say of one another.

use std::collections::BTreeSet;

use water_domain::{KeyHash, Timestamp};
use water_keystore::{KeyState, Record};
use water_resources::{ApiKey, ApiKeyStatus};

use super::violation::Violation;
use crate::facts::{Facts, name, uid};
use crate::objects::{current, owner, shown, text_hash};

/// Looks at everything that stands; `now` is Redis' time.
pub fn declared(facts: &Facts, now: Timestamp) -> Vec<Violation> {
    let living = facts.keys.iter();
    let living = living.filter(|key| key.metadata.deletion_timestamp.is_none());
    let of_keys = living.flat_map(|key| {
        let synced = synced(facts, key, now);
        synced.into_iter().chain(secret(facts, key))
    });
    of_keys.chain(orphans(facts)).collect()
}

/// 1
fn synced(facts: &Facts, key: &ApiKey, now: Timestamp) -> Option<Violation> {
    let published = facts.published(uid(key));
    let held = facts.held.get(uid(key));
    let held = held.map(|held| held.hashes.clone()).unwrap_or_default();
    let declared = named(key.status.as_ref(), now);
    let is_exact = published == declared
        && held == declared
        && published
            .iter()
            .all(|hash| is_as_declared(facts, key, hash));
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
        is_accepted && !is_synced
    } else {
        is_synced
    };
    is_wrong.then(|| Violation::of(1, found()))
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
    let overlapping = overlapping.map(|previous| &previous.hash);
    let hashes = current.chain(announced).chain(overlapping);
    hashes.filter_map(|hash| hash.parse().ok()).collect()
}

fn is_as_declared(facts: &Facts, key: &ApiKey, hash: &KeyHash) -> bool {
    let is_so = |record: &Record| {
        let is_suspended = record.state == KeyState::Suspended;
        record.plan == key.spec.plan
            && record.account == key.spec.account_id
            && is_suspended == key.spec.suspend
            && record.not_before == key.spec.not_before
            && record.expires == key.spec.expiration_time
    };
    let stored = facts.stored.get(hash);
    stored.is_some_and(|stored| stored.record.as_ref().is_ok_and(is_so))
}

/// 2
fn orphans(facts: &Facts) -> impl Iterator<Item = Violation> {
    let living: BTreeSet<&str> = facts.keys.iter().map(uid).collect();
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
    key.spec.material.generated.as_ref()?;
    if !shown(key, "SecretReady").starts_with("True/") {
        return None;
    }
    let secrets = facts.secrets.iter();
    let own: Vec<_> = secrets
        .filter(|secret| owner(secret) == Some(uid(key)))
        .collect();
    let found = match own.as_slice() {
        [secret] => match (text_hash(secret), current(key)) {
            (Ok(text), Ok(current)) if text == current => return None,
            (text, current) => format!("its text hashes to {text:?}, current is {current:?}"),
        },
        secrets => format!("it has {} Secrets", secrets.len()),
    };
    Some(Violation::of(3, format!("{}: {found}", name(key))))
}
