//! The Secret that hands a generated key to its owner: the only place of its text.
//!
//! It is created, never applied over another's. Its annotations carry the hash, so that the
//! directory can be rebuilt from metadata alone; the operator never reads its data.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use water_domain::{PlainKey, Timestamp};

use crate::conditions::RECORD_MANAGER;
use crate::context::Context;
use crate::crd::api_key::{DeletionPolicy, Generated, IssuedKey};
use crate::crd::{ApiKey, WaterDataApi};
use crate::installation::render::MANAGED_BY;

/// The label by which keys' Secrets are watched; its value is the ApiKey's name.
pub const KEY_LABEL: &str = "waterdata.dev/api-key";
const OWNER_UID: &str = "waterdata.dev/api-key-uid";
const HASH: &str = "waterdata.dev/key-hash";
const KEY_ID: &str = "waterdata.dev/key-id";
const REVISION: &str = "waterdata.dev/revision";
const ISSUED: &str = "waterdata.dev/issued-time";

/// What stands under the Secret's name.
#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    /// Nothing.
    Missing,
    /// This ApiKey's Secret, with the key that it holds.
    Own {
        /// The key.
        issued: IssuedKey,
        /// The Secret's version.
        version: Option<String>,
    },
    /// Somebody else's.
    Foreign,
}

/// What became of a Secret that was to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Created {
    /// It is there, in this version.
    Written(Option<String>),
    /// Somebody else's has the name.
    Taken,
    /// The API server does not accept it, by a quota or a policy; its words.
    Rejected(String),
}

/// The name of an ApiKey's Secret.
pub fn name(key: &ApiKey, generated: &Generated) -> String {
    generated
        .secret_name
        .clone()
        .unwrap_or_else(|| format!("{}-apikey", key.name_any()))
}

/// Looks for the Secret: in the watch's memory, and, if that knows nothing, at the API server, since
/// a Secret just written may not have come back yet.
pub async fn find(key: &ApiKey, name: &str, context: &Context) -> kube::Result<Found> {
    let namespace = key.namespace().unwrap_or_default();
    let place = ObjectRef::<PartialObjectMeta<Secret>>::new(name).within(&namespace);
    if let Some(known) = context.secrets.get(&place) {
        return Ok(judge(key, &known.metadata));
    }
    let asked = context
        .api::<Secret>(&namespace)
        .get_metadata_opt(name)
        .await?;
    Ok(asked.map_or(Found::Missing, |secret| judge(key, &secret.metadata)))
}

/// The key that an ApiKey's Secret holds, as far as the watch has told.
pub fn known(key: &ApiKey, context: &Context) -> Option<IssuedKey> {
    let material = &key.spec.material;
    if material.hash.is_some() {
        return None;
    }
    let name = name(key, &material.generated.clone().unwrap_or_default());
    let place = ObjectRef::<PartialObjectMeta<Secret>>::new(&name)
        .within(&key.namespace().unwrap_or_default());
    match judge(key, &context.secrets.get(&place)?.metadata) {
        Found::Own { issued, .. } => Some(issued),
        Found::Missing | Found::Foreign => None,
    }
}

fn judge(key: &ApiKey, metadata: &ObjectMeta) -> Found {
    let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).cloned();
    let issued = || {
        Some(IssuedKey {
            revision: annotation(REVISION)?.parse().ok()?,
            hash: annotation(HASH)?,
            key_id: annotation(KEY_ID)?,
            issued_time: Timestamp::parse(&annotation(ISSUED)?).ok()?,
        })
    };
    match issued() {
        Some(issued) if annotation(OWNER_UID) == key.uid() => Found::Own {
            issued,
            version: metadata.resource_version.clone(),
        },
        _ => Found::Foreign,
    }
}

/// Writes the Secret, if nothing has its name.
pub async fn create(
    key: &ApiKey,
    generated: &Generated,
    issued: &IssuedKey,
    plain: &PlainKey<'_>,
    api: &WaterDataApi,
    context: &Context,
) -> kube::Result<Created> {
    let secret = build(key, generated, issued, plain, api);
    let params = PostParams {
        field_manager: Some(RECORD_MANAGER.into()),
        ..PostParams::default()
    };
    let namespace = key.namespace().unwrap_or_default();
    match context
        .api::<Secret>(&namespace)
        .create(&params, &secret)
        .await
    {
        Ok(created) => Ok(Created::Written(created.resource_version())),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Created::Taken),
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_invalid() => {
            Ok(Created::Rejected(status.message))
        }
        Err(error) => Err(error),
    }
}

fn build(
    key: &ApiKey,
    generated: &Generated,
    issued: &IssuedKey,
    plain: &PlainKey<'_>,
    api: &WaterDataApi,
) -> Secret {
    let pairs = |pairs: &[(&str, String)]| -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect()
    };
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    Secret {
        metadata: ObjectMeta {
            name: Some(name(key, generated)),
            namespace: key.namespace(),
            labels: Some(pairs(&[
                (KEY_LABEL, key.name_any()),
                (MANAGED_BY.0, MANAGED_BY.1.into()),
            ])),
            annotations: Some(pairs(&[
                (OWNER_UID, key.uid().unwrap_or_default()),
                (HASH, issued.hash.clone()),
                (KEY_ID, issued.key_id.clone()),
                (REVISION, issued.revision.to_string()),
                (ISSUED, issued.issued_time.to_string()),
            ])),
            // Collected with the ApiKey, unless it is to be retained.
            owner_references: match generated.deletion_policy {
                DeletionPolicy::Delete => key.controller_owner_ref(&()).map(|owner| vec![owner]),
                DeletionPolicy::Retain => None,
            },
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".into()),
        data: Some(BTreeMap::from([
            ("api-key".into(), bytes(plain.expose())),
            ("key-id".into(), bytes(&issued.key_id)),
            ("base-url".into(), bytes(&base_url(api))),
        ])),
        ..Secret::default()
    }
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

#[cfg(test)]
mod tests {
    use water_domain::KeyPrefix;

    use super::*;
    use crate::sample;

    fn written(key: &ApiKey, generated: &Generated) -> Secret {
        let plain = PlainKey::generate(&KeyPrefix::default(), &[7; 48]);
        let issued = IssuedKey {
            revision: 0,
            hash: plain.hash().to_string(),
            key_id: plain.key_id().to_string(),
            issued_time: Timestamp::from_millis(0).unwrap(),
        };
        build(
            key,
            generated,
            &issued,
            &plain,
            &sample::api("water-data", "team"),
        )
    }

    #[test]
    fn a_secret_is_its_own_keys_only() {
        let key = sample::key("acme", "team");
        let secret = written(&key, &Generated::default());
        assert!(matches!(judge(&key, &secret.metadata), Found::Own { .. }));
        assert_eq!(
            judge(&sample::key("other", "team"), &secret.metadata),
            Found::Foreign
        );
        assert_eq!(judge(&key, &ObjectMeta::default()), Found::Foreign);
    }

    #[test]
    fn the_text_is_in_the_data_alone() {
        let secret = written(&sample::key("acme", "team"), &Generated::default());
        let text = String::from_utf8(secret.data.as_ref().unwrap()["api-key"].0.clone()).unwrap();
        let metadata = serde_json::to_string(&secret.metadata).unwrap();
        assert!(text.starts_with("wdk_") && !metadata.contains(&text));
    }

    #[test]
    fn a_retained_secret_has_no_owner() {
        let retained = Generated {
            deletion_policy: DeletionPolicy::Retain,
            ..Generated::default()
        };
        let key = sample::key("acme", "team");
        assert_eq!(written(&key, &retained).metadata.owner_references, None);
        assert_eq!(
            written(&key, &Generated::default())
                .metadata
                .owner_references
                .unwrap()
                .len(),
            1
        );
    }
}
