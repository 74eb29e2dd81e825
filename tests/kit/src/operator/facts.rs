//! Contents of a namespace and of its directory at one moment at which nothing changes.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use water_domain::KeyHash;
use water_keystore::{Origin, StoredEntry};
use water_resources::ApiKey;

use super::objects::uid;
use super::world::World;
use crate::PatientDirectory;

/// Content of the API server and of Redis.
pub struct Facts {
    /// ApiKeys that can be read.
    pub keys: Vec<ApiKey>,
    /// ApiKeys whose spec cannot be read.
    pub unreadable: Vec<Value>,
    /// Secrets of ApiKeys.
    pub secrets: Vec<Secret>,
    /// Records of the directory.
    pub stored: HashMap<KeyHash, StoredEntry>,
    /// Hashes in the index of each ApiKey in `keys`, by its uid.
    pub held: HashMap<String, BTreeSet<KeyHash>>,
}

impl Facts {
    /// Reads everything; a change meanwhile is an error.
    pub async fn gather(world: &World) -> Result<Self> {
        let (directory, objects) = (world.directory()?, &world.objects);
        let (raw, before) = (objects.list("apikey", "")?, seq(&directory).await?);
        let (mut keys, mut unreadable) = (Vec::<ApiKey>::new(), Vec::new());
        for raw in &raw {
            match serde_json::from_value(raw.clone()) {
                Ok(key) => keys.push(key),
                Err(_) => unreadable.push(raw.clone()),
            }
        }
        let mut held = HashMap::new();
        for uid in keys.iter().map(uid) {
            let snapshot = directory.owner_snapshot(uid, &Origin::Generated, &[]);
            let hashes = snapshot.await?.records.into_keys().collect();
            held.insert(uid.to_owned(), hashes);
        }
        let facts = Self {
            secrets: objects.secrets()?,
            stored: directory.stored().await?,
            held,
            keys,
            unreadable,
        };
        let is_still = objects.list("apikey", "")? == raw && seq(&directory).await? == before;
        ensure!(is_still, "something changed while it was read");
        Ok(facts)
    }

    /// Returns the hashes that the directory holds of an owner, by its records.
    pub fn published(&self, uid: &str) -> BTreeSet<KeyHash> {
        let is_owned = |stored: &StoredEntry| {
            let owner = stored.owner.as_ref();
            owner.is_some_and(|owner| &*owner.uid == uid)
        };
        let owned = self.stored.iter().filter(|(_, stored)| is_owned(stored));
        owned.map(|(hash, _)| *hash).collect()
    }
}

async fn seq(directory: &PatientDirectory) -> Result<u64> {
    let seen = directory.observe().await?;
    let meta = seen.verified();
    let meta = meta.with_context(|| format!("the directory is not whole: {seen:?}"))?;
    Ok(meta.seq)
}
