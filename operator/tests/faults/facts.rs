//! What a cluster and its directory hold at one moment at which nothing changes.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use water_domain::KeyHash;
use water_keystore::{Observation, Origin, Stored};
use water_resources::ApiKey;

use crate::objects::{Objects, RawKey};
use crate::world::World;

/// Read from the API server and from Redis.
pub struct Facts {
    pub keys: Vec<ApiKey>,
    /// ApiKeys whose spec cannot be read.
    pub unreadable: Vec<RawKey>,
    pub secrets: Vec<Secret>,
    pub stored: HashMap<KeyHash, Stored>,
    /// What the index says of each ApiKey in `keys`, by its uid.
    pub held: HashMap<String, BTreeSet<KeyHash>>,
}

impl Facts {
    /// Reads everything; that it changed meanwhile is an error.
    pub async fn gather(world: &World, objects: &Objects) -> Result<Self> {
        let directory = world.directory()?;
        let versions = |keys: &[RawKey]| -> Vec<Option<String>> {
            let versions = keys.iter().map(|key| key.metadata.resource_version.clone());
            versions.collect()
        };
        let (raw, before) = (objects.raw_keys().await?, seq(&directory.observe().await?)?);
        let first = versions(&raw);
        let (keys, unreadable) = sorted(raw)?;
        let mut held = HashMap::new();
        for uid in keys.iter().map(uid) {
            let snapshot = directory.owner_snapshot(uid, &Origin::Generated, &[]);
            let hashes = snapshot.await?.records.into_keys().collect();
            held.insert(uid.to_owned(), hashes);
        }
        let facts = Self {
            secrets: objects.secrets().await?,
            stored: directory.stored().await?,
            held,
            keys,
            unreadable,
        };
        let (raw, after) = (objects.raw_keys().await?, seq(&directory.observe().await?)?);
        let is_still = versions(&raw) == first && before == after;
        ensure!(is_still, "something changed while it was looked at");
        Ok(facts)
    }

    /// The hashes that the directory holds of an owner, by its records.
    pub fn published(&self, uid: &str) -> BTreeSet<KeyHash> {
        let is_owned = |stored: &Stored| {
            let owner = stored.owner.as_ref();
            owner.is_some_and(|owner| &*owner.uid == uid)
        };
        let owned = self.stored.iter().filter(|(_, stored)| is_owned(stored));
        owned.map(|(hash, _)| *hash).collect()
    }
}

/// Those that can be read, and those that cannot.
fn sorted(raw: Vec<RawKey>) -> Result<(Vec<ApiKey>, Vec<RawKey>)> {
    let (mut keys, mut unreadable) = (Vec::new(), Vec::new());
    for raw in raw {
        match serde_json::from_value(serde_json::to_value(&raw)?) {
            Ok(key) => keys.push(key),
            Err(_) => unreadable.push(raw),
        }
    }
    Ok((keys, unreadable))
}

fn seq(seen: &Observation) -> Result<u64> {
    let meta = seen.verified();
    Ok(meta
        .with_context(|| format!("the directory is not whole: {seen:?}"))?
        .seq)
}

/// Of an object that stands at the API server.
pub fn uid(key: &ApiKey) -> &str {
    key.metadata.uid.as_deref().unwrap_or_default()
}

/// Of an object that stands at the API server.
pub fn name(key: &ApiKey) -> &str {
    key.metadata.name.as_deref().unwrap_or_default()
}
