//! The Secret that hands a generated key to its owner: the only place of its text.
//!
//! It is created, so that another's Secret of the name is never overwritten, and each later write names
//! the version that was read. Its annotations carry the hashes, so that the directory can be rebuilt
//! from metadata alone. Its text is read only at a version that neither this leader nor the status
//! knows; its hash is then remembered.

mod data;
mod metadata;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource};
use water_domain::{KeyHash, Timestamp};
use water_operator_core::key::facts::{self, Content};
use water_resources::api_key::IssuedKey;
use water_resources::{ApiKey, WaterDataApi};

use super::memory::{MadeKey, version};
use super::record::Issuance;
use super::subject::Subject;
use crate::caches::SecretStores;
use crate::lock::lock;
use crate::watches::trim::trim;
use data::Agreement;
pub use data::{RestoredSecret, SecretData, restored};
use metadata::{CURRENT, OWNER, OWNER_UID, PREVIOUS, RETIRES, is_as_declared};

/// Object under the Secret's name.
#[derive(Clone, PartialEq, Debug)]
pub enum SecretLookup {
    Missing,
    /// The ApiKey's Secret.
    Own(Box<StoredSecret>),
    /// A Secret of an ApiKey of the same namespace and name, and of another uid.
    Orphan(Box<StoredSecret>),
    Foreign,
}

/// A key's Secret by its metadata.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredSecret {
    pub meta: ObjectMeta,
    /// Key that the annotations name; `None`: they name none.
    pub issued: Option<Issuance>,
    /// Key that the annotations name as the one before, and the time from which that is refused.
    pub retiring: Option<(Issuance, Timestamp)>,
}

impl SecretLookup {
    /// The Secret, if it is or was this ApiKey's.
    pub fn written(&self) -> Option<&StoredSecret> {
        match self {
            Self::Own(written) | Self::Orphan(written) => Some(written),
            Self::Missing | Self::Foreign => None,
        }
    }

    /// Facts about the Secret to decide by, with the agreement of its data with its annotations.
    fn facts(
        &self,
        agreement: Agreement,
        subject: &Subject,
        api: Option<&WaterDataApi>,
    ) -> facts::Secret<KeyHash> {
        let is_genuine = agreement != Agreement::Nothing;
        let content = |written: &StoredSecret| {
            let declared = subject.key.as_ref().ok().zip(api);
            let retiring = written.retiring.as_ref();
            Some(Content {
                hash: written.issued.as_ref()?.hash,
                retiring: retiring.map(|(before, at)| (before.hash, *at)),
                is_as_declared: agreement == Agreement::All
                    && declared.is_some_and(|(key, api)| is_as_declared(key, written, api)),
            })
        };
        match self {
            Self::Missing => facts::Secret::Missing,
            Self::Own(written) if is_genuine => {
                content(written).map_or(facts::Secret::Edited, facts::Secret::Own)
            }
            Self::Own(_) => facts::Secret::Edited,
            Self::Orphan(written) if is_genuine => {
                content(written).map_or(facts::Secret::Foreign, |content| facts::Secret::Orphan {
                    content,
                    is_requested: subject.adopts(&content.hash),
                    is_collected: is_collected(&written.meta),
                })
            }
            Self::Orphan(_) | Self::Foreign => facts::Secret::Foreign,
        }
    }
}

impl StoredSecret {
    /// Keys named in the annotations: previous, then current.
    pub fn keys(&self) -> impl Iterator<Item = &Issuance> {
        let before = self.retiring.as_ref().map(|(before, _)| before);
        before.into_iter().chain(&self.issued)
    }
}

/// The keys' Secrets, as the watch reports them, as this leader has written or read them since, and at the API server.
/// What is kept of them ends with the leadership.
pub struct Secrets {
    client: Client,
    watched: SecretStores,
    pub kept: HashCache,
}

impl Secrets {
    /// Creates a view of the Secrets that the watch reports, with nothing kept.
    pub fn new(client: Client, watched: SecretStores) -> Self {
        Self {
            client,
            watched,
            kept: HashCache::default(),
        }
    }

    /// Object under the name of an ApiKey's Secret, and the facts about it to decide by, with its text taken into
    /// account.
    pub async fn inspect(
        &self,
        subject: &Subject,
        api: Option<&WaterDataApi>,
        made: Option<&MadeKey>,
    ) -> kube::Result<(SecretLookup, facts::Secret<KeyHash>)> {
        let (found, agreement) = match subject.secret_name() {
            None => (SecretLookup::Missing, Agreement::Nothing),
            Some(name) => self.examine(subject, &name, made).await?,
        };
        let facts = found.facts(agreement, subject, api);
        Ok((found, facts))
    }

    /// Content of the Secret as the watch and this leader's own writes show it; annotations are believed.
    pub fn inspect_known(
        &self,
        subject: &Subject,
        api: Option<&WaterDataApi>,
    ) -> (SecretLookup, facts::Secret<KeyHash>) {
        let name = subject.secret_name();
        let found = name.map_or(SecretLookup::Missing, |name| {
            self.known(&subject.meta, &name)
        });
        let facts = found.facts(Agreement::All, subject, api);
        (found, facts)
    }

    /// The Secret, and how far its data are what its annotations name. Reads the watch's memory and, before a key is made
    /// or after somebody else wrote first, at the API server.
    async fn examine(
        &self,
        subject: &Subject,
        name: &str,
        made: Option<&MadeKey>,
    ) -> kube::Result<(SecretLookup, Agreement)> {
        let known = self.known(&subject.meta, name);
        let is_to_be_asked = made.map_or(known == SecretLookup::Missing, |made| made.is_overtaken);
        let found = if is_to_be_asked {
            self.ask(&subject.meta, name).await?
        } else {
            known
        };
        let data = match &found {
            SecretLookup::Missing | SecretLookup::Foreign => {
                return Ok((found, Agreement::Nothing));
            }
            SecretLookup::Own(written) => self.known_data(subject, written),
            SecretLookup::Orphan(_) => None,
        };
        let (found, data) = match data {
            Some(data) => (found, Some(data)),
            None => self.read(&subject.meta, name).await?,
        };
        if let SecretLookup::Orphan(written) = &found
            && !(data.is_some_and(|data| written.is_adoptable(data, subject.revision()))
                && self.is_living(&subject.meta).await?)
        {
            return Ok((SecretLookup::Foreign, Agreement::Nothing));
        }
        let agreement = found.written().zip(data);
        let agreement = agreement.map(|(written, data)| written.agreement(data));
        Ok((found, agreement.unwrap_or(Agreement::Nothing)))
    }

    /// Data at this version, if it was written or read before. The status names no version whose data differ from its
    /// annotations.
    fn known_data(&self, subject: &Subject, written: &StoredSecret) -> Option<SecretData> {
        let version = written.meta.resource_version.as_ref();
        let reported = subject.status.secret_resource_version.as_ref();
        let is_reported = version.is_some() && reported == version;
        let reported = || {
            let issued = written.issued.as_ref().filter(|_| is_reported)?;
            Some(SecretData::written(issued.hash))
        };
        self.kept.data_at(subject.uid(), version).or_else(reported)
    }

    /// The key in the Secret, if its text is known to be that of the key which its annotations name.
    pub fn written<'a>(
        &self,
        subject: &Subject,
        written: &'a StoredSecret,
    ) -> Option<&'a Issuance> {
        let issued = written.issued.as_ref()?;
        (self.known_data(subject, written)?.text == Some(issued.hash)).then_some(issued)
    }

    /// Whether the ApiKey of that name still is this one; then the ApiKey that owned the Secret is gone.
    async fn is_living(&self, key: &ObjectMeta) -> kube::Result<bool> {
        let name = key.name.as_deref().unwrap_or_default();
        let living = self.beside::<ApiKey>(key).get_metadata_opt(name).await?;
        Ok(living.is_some_and(|living| living.metadata.uid == key.uid))
    }

    /// The Secret of an ApiKey, as the watch and this leader's own writes have reported it.
    pub fn known(&self, key: &ObjectMeta, name: &str) -> SecretLookup {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let place = ObjectRef::<PartialObjectMeta<Secret>>::new(name).within(namespace);
        let Some(watched) = self.watched.get(&place) else {
            return SecretLookup::Missing;
        };
        let uid = key.uid.as_deref().unwrap_or_default();
        match self.kept.newer(uid, &watched.metadata) {
            Some(newer) => judge(key, &newer),
            None => judge(key, &watched.metadata),
        }
    }

    /// Asks the API server for the Secret of an ApiKey: the watch knows no other Secrets than keys', and not yet one
    /// that was just written.
    async fn ask(&self, key: &ObjectMeta, name: &str) -> kube::Result<SecretLookup> {
        let asked = self.beside::<Secret>(key).get_metadata_opt(name).await?;
        Ok(asked.map_or(SecretLookup::Missing, |secret| judge(key, &secret.metadata)))
    }

    /// The Secret with what its data hold, which is kept; `None`: there is no Secret.
    async fn read(
        &self,
        key: &ObjectMeta,
        name: &str,
    ) -> kube::Result<(SecretLookup, Option<SecretData>)> {
        let Some(secret) = self.beside::<Secret>(key).get_opt(name).await? else {
            return Ok((SecretLookup::Missing, None));
        };
        let data = SecretData::read(&secret);
        let found = judge(key, &secret.metadata);
        if let (SecretLookup::Own(written), Some(uid)) = (&found, &key.uid) {
            self.kept.keep(uid, written.meta.clone(), data);
        }
        Ok((found, Some(data)))
    }

    /// API of a kind in an ApiKey's namespace.
    fn beside<K>(&self, key: &ObjectMeta) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Secrets that this leader has written or read, by the uid of the ApiKey.
#[derive(Default)]
pub struct HashCache(Mutex<HashMap<String, KeptSecret>>);

/// A key's Secret as this leader wrote or read it.
struct KeptSecret {
    version: Option<String>,
    /// Metadata; `None` once the watch has shown this version: thousands of them would be held twice.
    meta: Option<Box<ObjectMeta>>,
    data: SecretData,
}

impl HashCache {
    /// Keeps what the API server answered to a read or a write of an ApiKey's Secret.
    pub fn keep(&self, uid: &str, mut meta: ObjectMeta, data: SecretData) {
        trim(&mut meta);
        let kept = KeptSecret {
            version: meta.resource_version.clone(),
            meta: Some(Box::new(meta)),
            data,
        };
        lock(&self.0).insert(uid.to_owned(), kept);
    }

    fn data_at(&self, uid: &str, version: Option<&String>) -> Option<SecretData> {
        let secrets = lock(&self.0);
        let kept = secrets.get(uid)?;
        (kept.version.as_ref() == version).then_some(kept.data)
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

    /// Forgets the Secrets of ApiKeys that are gone.
    pub fn retain(&self, living: &HashSet<String>) {
        lock(&self.0).retain(|uid, _| living.contains(uid));
    }
}

/// Finds the owner of a Secret by its annotations.
fn judge(key: &ObjectMeta, metadata: &ObjectMeta) -> SecretLookup {
    let annotation = |name: &str| annotation(metadata, name);
    let issued = |[hash, key_id, revision, time]: [&str; 4]| {
        Issuance::read(&IssuedKey {
            revision: annotation(revision)?.parse().ok()?,
            hash: annotation(hash)?,
            key_id: annotation(key_id)?,
            issued_time: Timestamp::parse(&annotation(time)?).ok()?,
        })
    };
    let retires = annotation(RETIRES).and_then(|time| Timestamp::parse(&time).ok());
    let written = Box::new(StoredSecret {
        meta: metadata.clone(),
        issued: issued(CURRENT),
        retiring: issued(PREVIOUS).zip(retires),
    });
    if key.uid.is_some() && annotation(OWNER_UID) == key.uid {
        SecretLookup::Own(written)
    } else if annotation(OWNER) == Some(path(key)) && written.issued.is_some() {
        SecretLookup::Orphan(written)
    } else {
        SecretLookup::Foreign
    }
}

/// Whether an orphan will be collected: it is being deleted, or has only owners that are gone.
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
pub fn path(key: &ObjectMeta) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!("{}/{}", text(&key.namespace), text(&key.name))
}

#[cfg(test)]
mod tests;
