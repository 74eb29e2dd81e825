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

use super::finalizer::ACCOUNT_LABEL;
use super::record::Issued;
use crate::conditions::RECORD_MANAGER;
use crate::context::Context;
use crate::crd::api_key::{DeletionPolicy, IssuedKey};
use crate::crd::{ApiKey, ApiKeySpec, WaterDataApi};
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
    /// This ApiKey's Secret.
    Own {
        /// The key that it says it holds.
        issued: Issued,
        /// The Secret's version.
        version: Option<String>,
    },
    /// Somebody else's.
    Foreign,
}

/// What became of a Secret that was to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Created {
    /// It is there.
    Written,
    /// Something has the name.
    Taken,
    /// The API server does not accept it, by a quota or a policy; its words.
    Rejected(String),
}

/// The name of an ApiKey's Secret.
pub fn name(key: &str, spec: &ApiKeySpec) -> String {
    let generated = spec.material.generated.as_ref();
    let named = generated.and_then(|generated| generated.secret_name.clone());
    named.unwrap_or_else(|| format!("{key}-apikey"))
}

/// The Secret of the ApiKey with that uid, as far as the watch has told.
pub fn known(uid: &str, name: &str, namespace: &str, context: &Context) -> Found {
    let place = ObjectRef::<PartialObjectMeta<Secret>>::new(name).within(namespace);
    let known = context.secrets.get(&place);
    known.map_or(Found::Missing, |secret| judge(uid, &secret.metadata))
}

/// The same as the API server tells it: the watch knows no other Secrets than keys', and not yet
/// one that was just written.
pub async fn ask(uid: &str, name: &str, namespace: &str, context: &Context) -> kube::Result<Found> {
    let secrets = context.api::<Secret>(namespace);
    let asked = secrets.get_metadata_opt(name).await?;
    Ok(asked.map_or(Found::Missing, |secret| judge(uid, &secret.metadata)))
}

fn judge(uid: &str, metadata: &ObjectMeta) -> Found {
    let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).cloned();
    let issued = || {
        Issued::read(&IssuedKey {
            revision: annotation(REVISION)?.parse().ok()?,
            hash: annotation(HASH)?,
            key_id: annotation(KEY_ID)?,
            issued_time: Timestamp::parse(&annotation(ISSUED)?).ok()?,
        })
    };
    match issued() {
        Some(issued) if annotation(OWNER_UID).as_deref() == Some(uid) => Found::Own {
            issued,
            version: metadata.resource_version.clone(),
        },
        _ => Found::Foreign,
    }
}

/// Writes the Secret, if nothing has its name.
pub async fn create(
    key: &ApiKey,
    issued: &Issued,
    plain: &PlainKey<'_>,
    api: &WaterDataApi,
    context: &Context,
) -> kube::Result<Created> {
    let secret = build(key, issued, plain, api);
    let params = PostParams {
        field_manager: Some(RECORD_MANAGER.into()),
        ..PostParams::default()
    };
    let secrets = context.api::<Secret>(&key.namespace().unwrap_or_default());
    match secrets.create(&params, &secret).await {
        Ok(_) => Ok(Created::Written),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Created::Taken),
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_invalid() => {
            Ok(Created::Rejected(status.message))
        }
        Err(error) => Err(error),
    }
}

fn build(key: &ApiKey, issued: &Issued, plain: &PlainKey<'_>, api: &WaterDataApi) -> Secret {
    let pairs = |pairs: &[(&str, String)]| -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect()
    };
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let generated = key.spec.material.generated.as_ref();
    let policy = generated.map(|generated| generated.deletion_policy);
    Secret {
        metadata: ObjectMeta {
            name: Some(name(&key.name_any(), &key.spec)),
            namespace: key.namespace(),
            labels: Some(pairs(&[
                (KEY_LABEL, key.name_any()),
                (ACCOUNT_LABEL, key.spec.account_id.to_string()),
                (MANAGED_BY.0, MANAGED_BY.1.into()),
            ])),
            annotations: Some(pairs(&[
                (OWNER_UID, key.uid().unwrap_or_default()),
                (HASH, issued.hash.to_string()),
                (KEY_ID, issued.key_id.to_string()),
                (REVISION, issued.revision.to_string()),
                (ISSUED, issued.time.to_string()),
            ])),
            // Collected with the ApiKey, unless it is to be retained.
            owner_references: match policy.unwrap_or_default() {
                DeletionPolicy::Delete => key.controller_owner_ref(&()).map(|owner| vec![owner]),
                DeletionPolicy::Retain => None,
            },
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".into()),
        data: Some(BTreeMap::from([
            ("api-key".into(), bytes(plain.expose())),
            ("key-id".into(), bytes(issued.key_id.as_str())),
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
    use crate::crd::api_key::Generated;
    use crate::sample;

    fn written(key: &ApiKey) -> Secret {
        let plain = PlainKey::generate(&KeyPrefix::default(), &[7; 48]);
        let issued = Issued {
            hash: plain.hash(),
            key_id: plain.key_id(),
            revision: 0,
            time: Timestamp::from_millis(0).unwrap(),
        };
        build(key, &issued, &plain, &sample::api("water-data", "team"))
    }

    #[test]
    fn a_secret_is_its_own_keys_only() {
        let secret = written(&sample::key("acme", "team"));
        let own = judge("uid-of-acme", &secret.metadata);
        assert!(matches!(own, Found::Own { .. }));
        assert_eq!(judge("uid-of-other", &secret.metadata), Found::Foreign);
        assert_eq!(judge("uid-of-acme", &ObjectMeta::default()), Found::Foreign);
    }

    #[test]
    fn annotations_that_name_no_key_make_it_somebody_elses() {
        let mut secret = written(&sample::key("acme", "team"));
        let annotations = secret.metadata.annotations.as_mut().unwrap();
        annotations.insert(KEY_ID.into(), "too short".into());
        assert_eq!(judge("uid-of-acme", &secret.metadata), Found::Foreign);
    }

    #[test]
    fn the_text_is_in_the_data_alone() {
        let secret = written(&sample::key("acme", "team"));
        let text = String::from_utf8(secret.data.as_ref().unwrap()["api-key"].0.clone()).unwrap();
        let metadata = serde_json::to_string(&secret.metadata).unwrap();
        assert!(text.starts_with("wdk_") && !metadata.contains(&text));
    }

    #[test]
    fn a_secret_names_its_account() {
        let labels = written(&sample::key("one", "team"))
            .metadata
            .labels
            .unwrap();
        assert_eq!(labels[ACCOUNT_LABEL], "acme");
    }

    #[test]
    fn a_retained_secret_has_no_owner() {
        let owners = |key: &ApiKey| written(key).metadata.owner_references;
        let mut key = sample::key("acme", "team");
        assert_eq!(owners(&key).unwrap().len(), 1);
        key.spec.material.generated = Some(Generated {
            deletion_policy: DeletionPolicy::Retain,
            ..Generated::default()
        });
        assert_eq!(owners(&key), None);
    }
}
