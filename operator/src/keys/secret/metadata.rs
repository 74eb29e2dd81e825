//! What a key's Secret says, apart from the API server: labels, annotations, owners and data.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use water_domain::{PlainKey, Timestamp};
use water_resources::api_key::{DeletionPolicy, KEY_LABEL};
use water_resources::{ApiKey, WaterDataApi};

use super::{Written, path};
use crate::installation::render::MANAGED_BY;
use crate::keys::finalizer::ACCOUNT_LABEL;
use crate::keys::record::Issued;

/// Namespace and name of the ApiKey.
pub const OWNER: &str = "waterdata.dev/owner";
/// Its uid.
pub const OWNER_UID: &str = "waterdata.dev/api-key-uid";
/// Where the API is reached with the key.
pub const BASE_URL: &str = "waterdata.dev/base-url";
/// Hash, key id, revision and time of issue of the key in the Secret.
pub const CURRENT: [&str; 4] = [
    "waterdata.dev/key-hash",
    "waterdata.dev/key-id",
    "waterdata.dev/revision",
    "waterdata.dev/issued-time",
];
/// The same of the key that was in it before.
pub const PREVIOUS: [&str; 4] = [
    "waterdata.dev/previous-key-hash",
    "waterdata.dev/previous-key-id",
    "waterdata.dev/previous-revision",
    "waterdata.dev/previous-issued-time",
];
/// From when on that is refused.
pub const RETIRES: &str = "waterdata.dev/previous-retire-time";

/// Whether nothing but the text would be written again.
pub fn is_as_declared(key: &ApiKey, written: &Written, api: &WaterDataApi) -> bool {
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
        && owners(key, found) == found
}

/// What the Secret says of itself.
pub struct SecretMetadata {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// That of a Secret with this key; `retiring` is the one before it, and from when on that is refused.
pub fn metadata(
    key: &ApiKey,
    issued: &Issued,
    retiring: Option<&(Issued, Timestamp)>,
    api: &WaterDataApi,
) -> SecretMetadata {
    let labels = [
        (KEY_LABEL, key.name_any()),
        (ACCOUNT_LABEL, key.spec.account_id.to_string()),
        (MANAGED_BY.0, MANAGED_BY.1.into()),
    ];
    let told = |names: [&'static str; 4], issued: &Issued| {
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
        (BASE_URL, base_url(api)),
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

/// The Secret is collected with the ApiKey, unless it is to be retained. An ApiKey that had the name
/// before owns it no more.
pub fn owners(key: &ApiKey, before: &[OwnerReference]) -> Vec<OwnerReference> {
    let generated = key.spec.material.generated.as_ref();
    let policy = generated.map(|generated| generated.deletion_policy);
    let own = match policy.unwrap_or_default() {
        DeletionPolicy::Delete => key.controller_owner_ref(&()),
        DeletionPolicy::Retain => None,
    };
    let is_other =
        |owner: &&OwnerReference| owner.kind != ApiKey::kind(&()) || owner.name != key.name_any();
    let others = before.iter().filter(is_other).cloned();
    others.chain(own).collect()
}

pub fn data(
    plain: &PlainKey<'_>,
    issued: &Issued,
    api: &WaterDataApi,
) -> BTreeMap<String, ByteString> {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    BTreeMap::from([
        ("api-key".into(), bytes(plain.expose())),
        ("key-id".into(), bytes(issued.key_id.as_str())),
        ("base-url".into(), bytes(&base_url(api))),
    ])
}

/// Where the API is reached with the key.
pub fn base_url(api: &WaterDataApi) -> String {
    match &api.spec.exposure.ingress {
        Some(ingress) if ingress.tls_secret_name.is_some() => format!("https://{}", ingress.host),
        Some(ingress) => format!("http://{}", ingress.host),
        None => format!(
            "http://{}-gate.{}.svc",
            api.name_any(),
            api.namespace().unwrap_or_default()
        ),
    }
}
