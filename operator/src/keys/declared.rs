//! What an ApiKey's spec, status and Secret say, as values to decide by.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use water_domain::{KeyHash, PlanName, Timestamp};
use water_resources::ApiKeySpec;

use super::memory::MadeKey;
use super::record::{self, Issued};
use super::secret::Written;
use super::seen::{Announced, Material, Rotation, Spec};
use super::subject::Subject;

/// Every key that spec, status, Secret and memory name.
pub fn issued(
    subject: &Subject,
    secret: Option<&Written>,
    made: Option<&MadeKey>,
    now: Timestamp,
) -> BTreeMap<KeyHash, Issued> {
    let announced = subject.announced();
    let last = announced.iter().map(|issued| issued.revision).max();
    let brought = subject.brought.map(|hash| Issued {
        hash,
        key_id: subject.brought_id().unwrap_or_else(|| hash.key_id()),
        revision: last.map_or(0, |last| last.saturating_add(1)),
        time: now,
    });
    let before = secret.and_then(|secret| secret.retiring.clone());
    let in_secret = secret.and_then(|secret| secret.issued.clone());
    let in_secret = before
        .map(|(before, _)| before)
        .into_iter()
        .chain(in_secret);
    let made = made.map(|made| made.issued.clone());
    // Of two that say something of one key the last counts.
    let all = brought.into_iter().chain(made).chain(in_secret);
    let all = all.chain(announced.into_iter().rev());
    all.map(|issued| (issued.hash, issued)).collect()
}

/// What an ApiKey declares; `None`: its object or its hash cannot be decoded.
pub fn spec(subject: &Subject) -> Option<Spec<KeyHash, PlanName>> {
    let key = subject.key.as_ref().ok()?;
    let material = match (&key.spec.material.hash, subject.brought) {
        (None, _) => Material::Generated,
        (Some(_), brought) => Material::Brought(brought?),
    };
    Some(Spec {
        terms: record::declared(&key.spec),
        material,
        rotation: rotation(&key.spec),
        reinstate: subject.reinstated(),
    })
}

/// When it wants its key to be replaced.
pub fn rotation(spec: &ApiKeySpec) -> Rotation {
    let seconds = |seconds: i64| Duration::from_secs(seconds.try_into().unwrap_or(0));
    let declared = &spec.rotation;
    Rotation {
        // The schema bounds it far below.
        revision: declared.revision.unwrap_or(0).try_into().unwrap_or(0),
        period: declared.period_seconds.map(seconds),
        overlap: seconds(declared.overlap_seconds),
    }
}

/// What a deletion revokes: not a brought hash whose account cannot be read, since its tombstone
/// would bar everyone.
pub fn named(subject: &Subject, issued: &BTreeMap<KeyHash, Issued>) -> BTreeSet<KeyHash> {
    let unknown = subject.brought.filter(|_| subject.account.is_none());
    let hashes = issued.keys().copied();
    hashes.filter(|hash| Some(*hash) != unknown).collect()
}

/// What its status says of its keys.
pub fn status(subject: &Subject) -> Announced<KeyHash> {
    let announced = subject.announced();
    let shown = subject.status.key_id.as_deref();
    let current = subject.status.current.as_ref().and_then(Issued::read);
    let previous = subject.status.previous.as_ref().map(record::issued_before);
    let previous = previous.as_ref().and_then(Issued::read);
    let retires = subject.status.previous.as_ref();
    let retires = retires.map(|previous| previous.retire_time);
    let revealed = current
        .iter()
        .filter(|current| Some(current.key_id.as_str()) == shown);
    Announced {
        all: announced.iter().map(|issued| issued.hash).collect(),
        revealed: revealed
            .chain(&previous)
            .map(|issued| issued.hash)
            .collect(),
        retiring: previous.map(|previous| previous.hash).zip(retires),
        reissues: subject
            .status
            .reissues
            .iter()
            .map(|reissue| reissue.time)
            .collect(),
        revision: current.as_ref().map_or(0, |current| current.revision),
        issued: current.as_ref().map(|current| current.time),
        current: current.map(|current| current.hash),
    }
}
