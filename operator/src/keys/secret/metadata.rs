//! Content of a key's Secret, apart from the API server: labels, annotations, owners and data.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use water_domain::{PlainKey, Timestamp};
use water_resources::api_key::{DeletionPolicy, KEY_LABEL};
use water_resources::{ApiKey, WaterDataApi};

use super::{StoredSecret, path};
use crate::installation::render::MANAGED_BY;
use crate::keys::metadata::ACCOUNT_LABEL;
use crate::keys::record::Issuance;

/// Namespace and name of the ApiKey.
pub const OWNER: &str = "waterdata.dev/owner";
/// Uid of the ApiKey.
pub const OWNER_UID: &str = "waterdata.dev/api-key-uid";
/// URL at which the API is reached with the key.
pub const BASE_URL: &str = "waterdata.dev/base-url";
/// Hash, key id, revision and time of issue of the key in the Secret.
pub const CURRENT: [&str; 4] = [
    "waterdata.dev/key-hash",
    "waterdata.dev/key-id",
    "waterdata.dev/revision",
    "waterdata.dev/issued-time",
];
/// Hash, key id, revision and time of issue of the key that was in it before.
pub const PREVIOUS: [&str; 4] = [
    "waterdata.dev/previous-key-hash",
    "waterdata.dev/previous-key-id",
    "waterdata.dev/previous-revision",
    "waterdata.dev/previous-issued-time",
];
/// Data that an annotation repeats: the data's name and the annotation.
pub const DETAILS: [(&str, &str); 2] = [("key-id", CURRENT[1]), ("base-url", BASE_URL)];
/// Time from which the previous key is refused.
pub const RETIRES: &str = "waterdata.dev/previous-retire-time";

/// Whether nothing but the text would be written again.
pub fn is_as_declared(key: &ApiKey, written: &StoredSecret, api: &WaterDataApi) -> bool {
    let Some(issued) = &written.issued else {
        return false;
    };
    let meta = &written.meta;
    let metadata = metadata(key, issued, written.retiring.as_ref(), api);
    let has = |found: &Option<BTreeMap<String, String>>, wanted: &BTreeMap<String, String>| {
        let found = found.as_ref();
        wanted
            .iter()
            .all(|(name, value)| found.and_then(|found| found.get(name)) == Some(value))
    };
    let found = meta.owner_references.as_deref().unwrap_or_default();
    has(&meta.labels, &metadata.labels)
        && has(&meta.annotations, &metadata.annotations)
        && owner_changes(key, found).is_empty()
}

/// Labels and annotations of a Secret.
pub struct SecretMetadata {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// Metadata of a Secret with this key; `retiring` is the one before it, and the time from which that is refused.
pub fn metadata(
    key: &ApiKey,
    issued: &Issuance,
    retiring: Option<&(Issuance, Timestamp)>,
    api: &WaterDataApi,
) -> SecretMetadata {
    let labels = [
        (KEY_LABEL, key.name_any()),
        (ACCOUNT_LABEL, key.spec.account_id.to_string()),
        (MANAGED_BY.0, MANAGED_BY.1.into()),
    ];
    let told = |names: [&'static str; 4], issued: &Issuance| {
        let values = [
            issued.hash.to_string(),
            issued.key_id.to_string(),
            issued.revision.to_string(),
            issued.time.to_string(),
        ];
        names.into_iter().zip(values)
    };
    let previous = retiring
        .into_iter()
        .flat_map(|(before, at)| told(PREVIOUS, before).chain([(RETIRES, at.to_string())]));
    let owner = [
        (OWNER, path(&key.metadata)),
        (OWNER_UID, key.uid().unwrap_or_default()),
        (BASE_URL, api.url()),
    ];
    let annotations = owner
        .into_iter()
        .chain(told(CURRENT, issued))
        .chain(previous);
    let text = |(name, value): (&str, String)| (name.to_owned(), value);
    SecretMetadata {
        labels: labels.into_iter().map(text).collect(),
        annotations: annotations.map(text).collect(),
    }
}

/// The owner: the Secret is collected with the ApiKey, unless it shall be retained.
pub fn owner(key: &ApiKey) -> Option<OwnerReference> {
    let generated = key.spec.material.generated.as_ref();
    let policy = generated.map(|generated| generated.deletion_policy);
    match policy.unwrap_or_default() {
        DeletionPolicy::Delete => key.controller_owner_ref(&()),
        DeletionPolicy::Retain => None,
    }
}

/// Changes of the owners for a strategic merge patch, which leaves others as they are. An ApiKey that had the
/// name before owns it no more.
pub fn owner_changes(key: &ApiKey, before: &[OwnerReference]) -> Vec<Value> {
    let own = owner(key);
    let is_own = |found: &OwnerReference| {
        own.as_ref().is_some_and(|own| {
            let of =
                |owner: &OwnerReference| (owner.uid.clone(), owner.name.clone(), owner.controller);
            of(own) == of(found)
        })
    };
    let has_name =
        |found: &&OwnerReference| found.kind == ApiKey::kind(&()) && found.name == key.name_any();
    let former = before
        .iter()
        .filter(has_name)
        .filter(|found| own.as_ref().is_none_or(|own| own.uid != found.uid));
    let removed = former.map(|found| json!({ "$patch": "delete", "uid": found.uid }));
    let added = own.iter().filter(|_| !before.iter().any(is_own));
    removed.chain(added.map(|own| json!(own))).collect()
}

/// The details besides the text, which are the operator's as that is.
pub fn details(issued: &Issuance, api: &WaterDataApi) -> BTreeMap<String, ByteString> {
    let bytes = |text: String| ByteString(text.into_bytes());
    BTreeMap::from([
        ("key-id".into(), bytes(issued.key_id.to_string())),
        ("base-url".into(), bytes(api.url())),
    ])
}

/// Data that a client needs.
pub fn data(
    plain: &PlainKey<'_>,
    issued: &Issuance,
    api: &WaterDataApi,
) -> BTreeMap<String, ByteString> {
    let text = ByteString(plain.expose().as_bytes().to_vec());
    let mut data = details(issued, api);
    data.insert("api-key".into(), text);
    data
}
