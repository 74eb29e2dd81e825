//! The Secret that hands a generated key to its owner: the only place of its text.
//!
//! It is created, so that another's Secret of the name is never overwritten, and each later write names
//! the version that was read. Its annotations carry the hashes, so that the directory can be rebuilt
//! from metadata alone. Its text is read once at each version that this operator did not write, to be
//! hashed.

mod marks;
mod write;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use water_domain::{KeyHash, KeyPrefix, PlainKey, Timestamp};
use water_resources::ApiKeySpec;
use water_resources::api_key::{IssuedKey, KEY_LABEL};

use super::record::Issued;
use crate::context::Context;
pub use marks::{Handed, is_as_declared};
pub use write::{Outcome, amend, create, replace};

const OWNER: &str = "waterdata.dev/owner";
const OWNER_UID: &str = "waterdata.dev/api-key-uid";
const BASE_URL: &str = "waterdata.dev/base-url";
/// Hash, key id, revision and time of issue of the key in the Secret.
const CURRENT: [&str; 4] = [
    "waterdata.dev/key-hash",
    "waterdata.dev/key-id",
    "waterdata.dev/revision",
    "waterdata.dev/issued-time",
];
/// The same of the key that was in it before.
const PREVIOUS: [&str; 4] = [
    "waterdata.dev/previous-key-hash",
    "waterdata.dev/previous-key-id",
    "waterdata.dev/previous-revision",
    "waterdata.dev/previous-issued-time",
];
const RETIRES: &str = "waterdata.dev/previous-retire-time";

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

/// The name of an ApiKey's Secret.
pub fn name(key: &str, spec: &ApiKeySpec) -> String {
    let generated = spec.material.generated.as_ref();
    let named = generated.and_then(|generated| generated.secret_name.clone());
    named.unwrap_or_else(|| format!("{key}-apikey"))
}

/// The Secret of an ApiKey, as far as the watch and this leader's own writes have told.
pub fn known(key: &ObjectMeta, name: &str, context: &Context) -> Found {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let place = ObjectRef::<PartialObjectMeta<Secret>>::new(name).within(namespace);
    let Some(watched) = context.secrets.get(&place) else {
        return Found::Missing;
    };
    let uid = key.uid.as_deref().unwrap_or_default();
    match context.memory.newer_secret(uid, &watched.metadata) {
        Some(newer) => judge(key, &newer),
        None => judge(key, &watched.metadata),
    }
}

/// The same as the API server tells it: the watch knows no other Secrets than keys', and not yet
/// one that was just written.
pub async fn ask(key: &ObjectMeta, name: &str, context: &Context) -> kube::Result<Found> {
    let asked = secrets(key, context).get_metadata_opt(name).await?;
    Ok(asked.map_or(Found::Missing, |secret| judge(key, &secret.metadata)))
}

/// The Secret with the hash of its text; `None`: it has none, or one that is no key.
pub async fn read(
    key: &ObjectMeta,
    name: &str,
    context: &Context,
) -> kube::Result<(Found, Option<KeyHash>)> {
    let Some(secret) = secrets(key, context).get_opt(name).await? else {
        return Ok((Found::Missing, None));
    };
    let text = secret.data.as_ref().and_then(|data| data.get("api-key"));
    let plain = text.and_then(|text| PlainKey::parse(&text.0, &KeyPrefix::default()).ok());
    Ok((
        judge(key, &secret.metadata),
        plain.map(|plain| plain.hash()),
    ))
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

fn secrets(key: &ObjectMeta, context: &Context) -> Api<Secret> {
    context.api(key.namespace.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests;
