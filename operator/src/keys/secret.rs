//! The Secret that hands a generated key to its owner: the only place of its text.
//!
//! It is created, so that another's Secret of the name is never overwritten, and each later write names
//! the version that was read. Its annotations carry the hashes, so that the directory can be rebuilt
//! from metadata alone. Its text is read once at each version that this operator did not write, to be
//! hashed.

mod marks;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client};
use water_domain::{KeyHash, KeyPrefix, PlainKey, Timestamp};
use water_resources::api_key::IssuedKey;

use super::memory::{lock, version};
use super::record::Issued;
use marks::{CURRENT, OWNER, OWNER_UID, PREVIOUS, RETIRES};
pub use marks::{Handed, is_as_declared};
pub use write::Outcome;

/// The keys' Secrets, as the watch tells of them, as this leader has written or read them since, and at
/// the API server. What is kept of them ends with the leadership.
pub struct Secrets {
    client: Client,
    watched: Store<PartialObjectMeta<Secret>>,
    kept: Kept,
}

/// What stands under the Secret's name.
#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    /// Nothing.
    Missing,
    /// This ApiKey's Secret.
    Own(Box<Written>),
    /// A Secret of an ApiKey of the same namespace and name, and of another uid.
    Orphan(Box<Written>),
    /// Somebody else's.
    Foreign,
}

/// A key's Secret by its metadata.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    /// The metadata.
    pub meta: ObjectMeta,
    /// The key that it says it holds; `None`: its annotations name none.
    pub issued: Option<Issued>,
    /// The key that it says it held before, and from when on that is refused.
    pub retiring: Option<(Issued, Timestamp)>,
}

impl Found {
    /// The Secret, if it is or was this ApiKey's.
    pub fn written(&self) -> Option<&Written> {
        match self {
            Self::Own(written) | Self::Orphan(written) => Some(written),
            Self::Missing | Self::Foreign => None,
        }
    }
}

impl Written {
    /// The keys that it names, the one that was in it before first.
    pub fn keys(&self) -> impl Iterator<Item = &Issued> {
        let before = self.retiring.as_ref().map(|(before, _)| before);
        before.into_iter().chain(&self.issued)
    }
}

impl Secrets {
    /// Those that the watch tells of.
    pub fn new(client: Client, watched: Store<PartialObjectMeta<Secret>>) -> Self {
        Self {
            client,
            watched,
            kept: Kept::default(),
        }
    }

    /// The Secret of an ApiKey, as far as the watch and this leader's own writes have told.
    pub fn known(&self, key: &ObjectMeta, name: &str) -> Found {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let place = ObjectRef::<PartialObjectMeta<Secret>>::new(name).within(namespace);
        let Some(watched) = self.watched.get(&place) else {
            return Found::Missing;
        };
        let uid = key.uid.as_deref().unwrap_or_default();
        match self.kept.newer(uid, &watched.metadata) {
            Some(newer) => judge(key, &newer),
            None => judge(key, &watched.metadata),
        }
    }

    /// The same as the API server tells it: the watch knows no other Secrets than keys', and not yet
    /// one that was just written.
    pub async fn ask(&self, key: &ObjectMeta, name: &str) -> kube::Result<Found> {
        let asked = self.beside(key).get_metadata_opt(name).await?;
        Ok(asked.map_or(Found::Missing, |secret| judge(key, &secret.metadata)))
    }

    /// The Secret with the hash of its text; `None`: it has none, or one that is no key.
    pub async fn read(
        &self,
        key: &ObjectMeta,
        name: &str,
    ) -> kube::Result<(Found, Option<KeyHash>)> {
        let Some(secret) = self.beside(key).get_opt(name).await? else {
            return Ok((Found::Missing, None));
        };
        let text = secret.data.as_ref().and_then(|data| data.get("api-key"));
        let plain = text.and_then(|text| PlainKey::parse(&text.0, &KeyPrefix::default()).ok());
        Ok((
            judge(key, &secret.metadata),
            plain.map(|plain| plain.hash()),
        ))
    }

    /// Keeps what the API server answered to a read or a write of an ApiKey's Secret; `text` is the hash
    /// of its text, or `None` where that is no key's.
    pub fn keep(&self, uid: &str, meta: ObjectMeta, text: Option<KeyHash>) {
        self.kept.keep(uid, meta, text);
    }

    /// What was kept of the text of an ApiKey's Secret, if that was of this version.
    pub fn text_at(&self, uid: &str, version: Option<&String>) -> Option<Option<KeyHash>> {
        self.kept.text_at(uid, version)
    }

    /// Forgets those of ApiKeys that are gone.
    pub fn retain(&self, living: &HashSet<String>) {
        self.kept.retain(living);
    }

    /// The Secrets of an ApiKey's namespace at the API server.
    fn beside(&self, key: &ObjectMeta) -> Api<Secret> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// What this leader has written or read, by the uid of the ApiKey.
#[derive(Default)]
struct Kept(Mutex<HashMap<String, KeptSecret>>);

struct KeptSecret {
    version: Option<String>,
    /// `None` once the watch has shown this version: thousands of them would be held twice.
    meta: Option<Box<ObjectMeta>>,
    text: Option<KeyHash>,
}

impl Kept {
    fn keep(&self, uid: &str, mut meta: ObjectMeta, text: Option<KeyHash>) {
        // Five times the rest.
        meta.managed_fields = None;
        let kept = KeptSecret {
            version: meta.resource_version.clone(),
            meta: Some(Box::new(meta)),
            text,
        };
        lock(&self.0).insert(uid.to_owned(), kept);
    }

    fn text_at(&self, uid: &str, version: Option<&String>) -> Option<Option<KeyHash>> {
        let secrets = lock(&self.0);
        let kept = secrets.get(uid)?;
        (kept.version.as_ref() == version).then_some(kept.text)
    }

    /// The metadata as they were kept, while the watch shows an older version.
    fn newer(&self, uid: &str, watched: &ObjectMeta) -> Option<ObjectMeta> {
        let mut secrets = lock(&self.0);
        let kept = secrets.get_mut(uid)?;
        let meta = kept.meta.as_deref()?;
        if version(meta) > version(watched) {
            return Some(meta.clone());
        }
        kept.meta = None;
        None
    }

    fn retain(&self, living: &HashSet<String>) {
        lock(&self.0).retain(|uid, _| living.contains(uid));
    }
}

fn judge(key: &ObjectMeta, metadata: &ObjectMeta) -> Found {
    let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).cloned();
    let issued = |[hash, key_id, revision, time]: [&str; 4]| {
        Issued::read(&IssuedKey {
            revision: annotation(revision)?.parse().ok()?,
            hash: annotation(hash)?,
            key_id: annotation(key_id)?,
            issued_time: Timestamp::parse(&annotation(time)?).ok()?,
        })
    };
    let retires = annotation(RETIRES).and_then(|time| Timestamp::parse(&time).ok());
    let written = Box::new(Written {
        meta: metadata.clone(),
        issued: issued(CURRENT),
        retiring: issued(PREVIOUS).zip(retires),
    });
    if key.uid.is_some() && annotation(OWNER_UID) == key.uid {
        Found::Own(written)
    } else if annotation(OWNER) == Some(path(key)) && written.issued.is_some() {
        Found::Orphan(written)
    } else {
        Found::Foreign
    }
}

/// Namespace and name of an ApiKey.
fn path(key: &ObjectMeta) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!("{}/{}", text(&key.namespace), text(&key.name))
}

#[cfg(test)]
mod tests;
