//! The Secret that hands a generated key to its owner: the only place of its text.
//!
//! It is created, so that another's Secret of the name is never overwritten, and each later write names
//! the version that was read. Its annotations carry the hashes, so that the directory can be rebuilt
//! from metadata alone. Its text is read only at a version that neither this leader nor the status
//! knows; its hash is then remembered.

mod metadata;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client, Resource};
use water_domain::{KeyHash, KeyPrefix, PlainKey, Timestamp};
use water_resources::api_key::IssuedKey;
use water_resources::{ApiKey, WaterDataApi};

use super::memory::{MadeKey, version};
use super::record::Issued;
use super::seen::{self, Admission, Content};
use super::subject::Subject;
use crate::lock::lock;
use metadata::{CURRENT, OWNER, OWNER_UID, PREVIOUS, RETIRES, is_as_declared};

/// What stands under the Secret's name.
#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    Missing,
    /// This ApiKey's Secret.
    Own(Box<Written>),
    /// A Secret of an ApiKey of the same namespace and name, and of another uid.
    Orphan(Box<Written>),
    Foreign,
}

/// A key's Secret by its metadata.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
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

    /// The same to decide by; `is_genuine`: its text is that of the key that its annotations name.
    fn seen(
        &self,
        is_genuine: bool,
        subject: &Subject,
        api: Option<&WaterDataApi>,
    ) -> seen::Secret<KeyHash> {
        let content = |written: &Written| {
            let declared = subject.key.as_ref().ok().zip(api);
            let retiring = written.retiring.as_ref();
            Some(Content {
                hash: written.issued.as_ref()?.hash,
                retiring: retiring.map(|(before, at)| (before.hash, *at)),
                is_as_declared: declared
                    .is_some_and(|(key, api)| is_as_declared(key, written, api)),
            })
        };
        match self {
            Self::Missing => seen::Secret::Missing,
            Self::Own(written) if is_genuine => {
                content(written).map_or(seen::Secret::Edited, seen::Secret::Own)
            }
            Self::Own(_) => seen::Secret::Edited,
            Self::Orphan(written) if is_genuine => {
                content(written).map_or(seen::Secret::Foreign, |content| seen::Secret::Orphan {
                    content,
                    is_collected: is_collected(&written.meta),
                })
            }
            Self::Orphan(_) | Self::Foreign => seen::Secret::Foreign,
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

/// The keys' Secrets, as the watch tells of them, as this leader has written or read them since, and at
/// the API server. What is kept of them ends with the leadership.
pub struct Secrets {
    client: Client,
    watched: Store<PartialObjectMeta<Secret>>,
    pub kept: HashCache,
}

impl Secrets {
    /// Those that the watch tells of.
    pub fn new(client: Client, watched: Store<PartialObjectMeta<Secret>>) -> Self {
        Self {
            client,
            watched,
            kept: HashCache::default(),
        }
    }

    /// What stands under the name of an ApiKey's Secret, and the same to decide by, with what its text says.
    /// An ApiKey that is not prepared gets its finalizer whatever its Secret is.
    pub async fn inspect(
        &self,
        subject: &Subject,
        admission: Admission,
        api: Option<&WaterDataApi>,
        made: Option<&MadeKey>,
        is_prepared: bool,
    ) -> kube::Result<(Found, seen::Secret<KeyHash>)> {
        let (found, is_genuine) = match subject.secret_name() {
            None => (Found::Missing, false),
            Some(name) if is_prepared && admission == Admission::Admitted => {
                self.examine(subject, &name, made).await?
            }
            Some(name) => (self.known(&subject.meta, &name), true),
        };
        let seen = found.seen(is_genuine, subject, api);
        Ok((found, seen))
    }

    /// The Secret, and whether its text is that of the key that its annotations name. Looks in the watch's
    /// memory and, before a key is made or after somebody else wrote first, at the API server.
    async fn examine(
        &self,
        subject: &Subject,
        name: &str,
        made: Option<&MadeKey>,
    ) -> kube::Result<(Found, bool)> {
        let known = self.known(&subject.meta, name);
        let is_to_be_asked = made.map_or(known == Found::Missing, |made| made.is_overtaken);
        let found = if is_to_be_asked {
            self.ask(&subject.meta, name).await?
        } else {
            known
        };
        let text = match &found {
            Found::Missing | Found::Foreign => return Ok((found, false)),
            Found::Own(written) => self.known_text(subject, written),
            Found::Orphan(_) => None,
        };
        let (found, text) = match text {
            Some(text) => (found, text),
            None => self.read(&subject.meta, name).await?,
        };
        if matches!(found, Found::Orphan(_)) && !self.is_living(&subject.meta).await? {
            return Ok((Found::Foreign, false));
        }
        let named = found.written().and_then(|written| written.issued.as_ref());
        let is_genuine = named.is_some_and(|issued| Some(issued.hash) == text);
        Ok((found, is_genuine))
    }

    /// The hash of the text at this version, if it was written or read before.
    fn known_text(&self, subject: &Subject, written: &Written) -> Option<Option<KeyHash>> {
        let version = written.meta.resource_version.as_ref();
        let told = subject.status.secret_resource_version.as_ref();
        let is_told = version.is_some() && told == version;
        let told = || is_told.then(|| written.issued.as_ref().map(|issued| issued.hash));
        self.kept.text_at(subject.uid(), version).or_else(told)
    }

    /// The key in the Secret, if its text is known to be that of the key which its annotations name.
    pub fn written<'a>(&self, subject: &Subject, written: &'a Written) -> Option<&'a Issued> {
        let issued = written.issued.as_ref()?;
        (self.known_text(subject, written)? == Some(issued.hash)).then_some(issued)
    }

    /// Whether the ApiKey of that name still is this one; then the ApiKey that owned the Secret is gone.
    async fn is_living(&self, key: &ObjectMeta) -> kube::Result<bool> {
        let name = key.name.as_deref().unwrap_or_default();
        let living = self.beside::<ApiKey>(key).get_metadata_opt(name).await?;
        Ok(living.is_some_and(|living| living.metadata.uid == key.uid))
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
    async fn ask(&self, key: &ObjectMeta, name: &str) -> kube::Result<Found> {
        let asked = self.beside::<Secret>(key).get_metadata_opt(name).await?;
        Ok(asked.map_or(Found::Missing, |secret| judge(key, &secret.metadata)))
    }

    /// The Secret with the hash of its text, which is kept; `None`: it has none, or one that is no key.
    async fn read(&self, key: &ObjectMeta, name: &str) -> kube::Result<(Found, Option<KeyHash>)> {
        let Some(secret) = self.beside::<Secret>(key).get_opt(name).await? else {
            return Ok((Found::Missing, None));
        };
        let text = secret.data.as_ref().and_then(|data| data.get("api-key"));
        let plain = text.and_then(|text| PlainKey::parse(&text.0, &KeyPrefix::default()).ok());
        let text = plain.map(|plain| plain.hash());
        let found = judge(key, &secret.metadata);
        if let (Found::Own(written), Some(uid)) = (&found, &key.uid) {
            self.kept.keep(uid, written.meta.clone(), text);
        }
        Ok((found, text))
    }

    /// A kind in an ApiKey's namespace, at the API server.
    fn beside<K>(&self, key: &ObjectMeta) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// What this leader has written or read, by the uid of the ApiKey.
#[derive(Default)]
pub struct HashCache(Mutex<HashMap<String, KeptSecret>>);

/// A key's Secret as this leader wrote or read it.
struct KeptSecret {
    version: Option<String>,
    /// `None` once the watch has shown this version: thousands of them would be held twice.
    meta: Option<Box<ObjectMeta>>,
    text: Option<KeyHash>,
}

impl HashCache {
    /// Keeps what the API server answered to a read or a write of an ApiKey's Secret; `text` is the hash
    /// of its text, or `None` where that is no key's.
    pub fn keep(&self, uid: &str, mut meta: ObjectMeta, text: Option<KeyHash>) {
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

    /// Forgets those of ApiKeys that are gone.
    pub fn retain(&self, living: &HashSet<String>) {
        lock(&self.0).retain(|uid, _| living.contains(uid));
    }
}

/// Whose Secret it is, by its annotations.
fn judge(key: &ObjectMeta, metadata: &ObjectMeta) -> Found {
    let annotation = |name: &str| annotation(metadata, name);
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

/// Whether an orphan goes by itself: it is being deleted, or has only owners that are gone.
fn is_collected(orphan: &ObjectMeta) -> bool {
    let owners = orphan.owner_references.as_deref().unwrap_or_default();
    let gone = annotation(orphan, OWNER_UID);
    let is_gone = |owner: &OwnerReference| Some(&owner.uid) == gone.as_ref();
    orphan.deletion_timestamp.is_some() || (!owners.is_empty() && owners.iter().all(is_gone))
}

fn annotation(metadata: &ObjectMeta, name: &str) -> Option<String> {
    metadata.annotations.as_ref()?.get(name).cloned()
}

/// Namespace and name of an ApiKey.
fn path(key: &ObjectMeta) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!("{}/{}", text(&key.namespace), text(&key.name))
}

#[cfg(test)]
mod tests;
