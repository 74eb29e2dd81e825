//! A key in the JSON API.

use kube::ResourceExt;
use serde::Serialize;
use water_domain::{KeyHash, KeyId, PlanName, Timestamp};
use water_resources::ApiKey;
use water_resources::api_key::RetiringKey;

use super::state::{State, state};
use crate::cluster::{MANAGED_BY, MANAGER, REQUESTED_BY};

/// Keys of an account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyList {
    /// Number of keys.
    pub count: usize,
    /// Newest first.
    pub data: Vec<Key>,
    /// Whether the platform may hold keys of the account in other places, which are not listed here.
    pub keys_elsewhere: bool,
}

/// A key of an account, without its text, which nobody but its owner has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// Name in paths.
    pub name: String,
    /// Purpose, in the holder's words.
    pub title: String,
    /// Public name, the part of the text behind the prefix.
    pub key_id: String,
    /// Plan whose limits it has.
    pub plan: PlanName,
    /// State at the gates.
    pub state: State,
    /// Reason of the state, in one word.
    pub reason: Option<String>,
    /// Place where it was made.
    pub made_by: MadeBy,
    /// Person who asked the portal for it, as the identity provider names people.
    pub requested_by: Option<String>,
    /// Time at which it was made.
    pub created_at: Option<Timestamp>,
    /// Time from which it is refused; none: it never expires.
    pub expires_at: Option<Timestamp>,
    /// Last use, to ten minutes.
    pub last_used_at: Option<Timestamp>,
    /// The text before, while it works.
    pub previous: Option<Previous>,
    /// Number of gates that do not know the last change yet.
    pub waiting_gates: usize,
}

/// A key's text before its last rotation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Previous {
    /// Public name.
    pub key_id: String,
    /// Time from which it is refused.
    pub retires_at: Timestamp,
    /// Last use, to 15 seconds.
    pub last_used_at: Option<Timestamp>,
}

/// Place where a key was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MadeBy {
    /// Portal: the key can be renamed, rotated and revoked.
    Portal,
    /// Manifest in the cluster: the key can be read and revoked.
    Cluster,
}

impl Key {
    /// Reads an ApiKey at this time. The last use of its text before is kept elsewhere.
    pub fn read(key: &ApiKey, now: Timestamp) -> Self {
        let (state, reason) = state(key);
        let status = key.status.as_ref();
        let made_by = made_by(key);
        let requested_by = key.annotations().get(REQUESTED_BY).cloned();
        Self {
            name: key.name_any(),
            title: key.spec.description.clone().unwrap_or_default(),
            key_id: key_id(key),
            plan: key.spec.plan.clone(),
            state,
            reason,
            made_by,
            requested_by: requested_by.filter(|_| made_by == MadeBy::Portal),
            created_at: created_at(key),
            expires_at: key.spec.expiration_time,
            last_used_at: status.and_then(|status| status.last_used_time),
            previous: previous(key, now).map(|previous| Previous {
                key_id: previous.issued.key_id.clone(),
                retires_at: previous.retire_time,
                last_used_at: None,
            }),
            waiting_gates: status.map_or(0, |status| status.waiting_for.len()),
        }
    }
}

/// Returns the place where an ApiKey was made.
pub fn made_by(key: &ApiKey) -> MadeBy {
    match key.labels().get(MANAGED_BY) {
        Some(manager) if manager == MANAGER => MadeBy::Portal,
        _ => MadeBy::Cluster,
    }
}

/// Returns the public name of the declared key; of a generated one that of the key in force, empty before
/// there is one.
pub fn key_id(key: &ApiKey) -> String {
    if let Some(declared) = &key.spec.material.hash {
        let of_hash = || {
            let hash: Option<KeyHash> = declared.sha256.parse().ok();
            hash.map(|hash| hash.key_id().to_string())
        };
        return declared.key_id.clone().or_else(of_hash).unwrap_or_default();
    }
    let status = key.status.as_ref();
    status
        .and_then(|status| status.key_id.clone())
        .unwrap_or_default()
}

/// Returns the text before, if it still works at this time.
pub fn previous(key: &ApiKey, now: Timestamp) -> Option<&RetiringKey> {
    let previous = key.status.as_ref()?.previous.as_ref();
    previous.filter(|previous| previous.retire_time > now)
}

/// Returns the public names that an ApiKey has or had a moment ago.
pub fn key_ids(key: &ApiKey) -> impl Iterator<Item = String> {
    let status = key.status.iter();
    let told = status.flat_map(|status| {
        let current = status
            .current
            .as_ref()
            .map(|current| current.key_id.clone());
        let previous = status
            .previous
            .as_ref()
            .map(|previous| previous.issued.key_id.clone());
        [current, previous]
    });
    [Some(key_id(key))].into_iter().chain(told).flatten()
}

/// Returns the previous texts' names, as the counters know them.
pub fn previous_ids(keys: &[Key]) -> Vec<KeyId> {
    let previous = keys.iter().filter_map(|key| key.previous.as_ref());
    previous
        .filter_map(|previous| previous.key_id.parse().ok())
        .collect()
}

fn created_at(key: &ApiKey) -> Option<Timestamp> {
    let created = key.creation_timestamp()?;
    Timestamp::from_millis(created.0.as_millisecond())
}
