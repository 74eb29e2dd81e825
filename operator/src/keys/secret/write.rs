//! The writes of a key's Secret: a POST, or a PATCH that names the version that was read.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};
use water_domain::Timestamp;
use water_resources::{ApiKey, WaterDataApi};

use super::metadata::{PREVIOUS, RETIRES, SecretMetadata, base_url, data, metadata, owners};
use super::{Secrets, Written};
use crate::client::record_params;
use crate::conditions::RECORD_MANAGER;
use crate::keys::error::KeyError;
use crate::keys::memory::MadeKey;
use crate::keys::record::Issued;
use crate::keys::subject::secret_name;

/// The Secret's metadata as it is now; `None`: somebody else wrote first.
type Answer = Result<Option<ObjectMeta>, KeyError>;

impl Secrets {
    /// Writes the Secret, if nothing has its name.
    pub async fn create(
        &self,
        key: &ApiKey,
        made: &MadeKey,
        retiring: Option<&(Issued, Timestamp)>,
        api: &WaterDataApi,
    ) -> Answer {
        let metadata = metadata(key, &made.issued, retiring, api);
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(secret_name(key)),
                namespace: key.namespace(),
                owner_references: Some(owners(key, &[])),
                labels: Some(metadata.labels),
                annotations: Some(metadata.annotations),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".into()),
            data: Some(data(&made.plain, &made.issued, api)),
            ..Secret::default()
        };
        let params = record_params();
        let secrets = self.beside::<Secret>(&key.metadata);
        answer(secrets.create(&params, &secret).await)
    }

    /// Writes another key over the one in the Secret, unless somebody wrote it since it was read.
    pub async fn replace(
        &self,
        key: &ApiKey,
        made: &MadeKey,
        retiring: Option<&(Issued, Timestamp)>,
        api: &WaterDataApi,
        before: &Written,
    ) -> Answer {
        let data = json!(data(&made.plain, &made.issued, api));
        let metadata = metadata(key, &made.issued, retiring, api);
        self.patch(key, before, metadata, data).await
    }

    /// Brings everything but the text up to date, likewise.
    pub async fn amend(
        &self,
        key: &ApiKey,
        issued: &Issued,
        api: &WaterDataApi,
        before: &Written,
    ) -> Answer {
        let data = json!({ "base-url": ByteString(base_url(api).into_bytes()) });
        let metadata = metadata(key, issued, before.retiring.as_ref(), api);
        self.patch(key, before, metadata, data).await
    }

    /// Others' labels, annotations, owners and data stay.
    async fn patch(
        &self,
        key: &ApiKey,
        before: &Written,
        metadata: SecretMetadata,
        data: Value,
    ) -> Answer {
        let owners = owners(
            key,
            before.meta.owner_references.as_deref().unwrap_or_default(),
        );
        let mut annotations = json!(metadata.annotations);
        for absent in PREVIOUS.iter().chain([&RETIRES]) {
            if annotations[absent].is_null() {
                annotations[absent] = Value::Null;
            }
        }
        let patch = json!({
            "metadata": {
                "resourceVersion": before.meta.resource_version,
                "labels": metadata.labels,
                "annotations": annotations,
                "ownerReferences": owners,
            },
            "data": data,
        });
        let params = PatchParams::apply(RECORD_MANAGER);
        let name = before.meta.name.as_deref().unwrap_or_default();
        let secrets = self.beside::<Secret>(&key.metadata);
        answer(secrets.patch(name, &params, &Patch::Merge(patch)).await)
    }
}

fn answer(written: kube::Result<Secret>) -> Answer {
    match written {
        Ok(secret) => Ok(Some(secret.metadata)),
        Err(kube::Error::Api(status))
            if status.is_already_exists() || status.is_conflict() || status.is_not_found() =>
        {
            Ok(None)
        }
        // By a quota or a policy.
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_invalid() => {
            Err(KeyError::Rejected(status.message))
        }
        Err(error) => Err(error.into()),
    }
}
