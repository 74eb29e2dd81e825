//! The writes of a key's Secret: a POST, or a PATCH that names the version that was read.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};
use water_domain::Timestamp;
use water_operator_core::key::step::METADATA;
use water_resources::{ApiKey, WaterDataApi};

use super::metadata::{
    PREVIOUS, RETIRES, SecretMetadata, data, details, is_as_declared, metadata, owner,
    owner_changes,
};
use super::{SecretLookup, Secrets, StoredSecret, judge};
use crate::client::record_params;
use crate::conditions::RECORD_MANAGER;
use crate::keys::error::KeyError;
use crate::keys::memory::MadeKey;
use crate::keys::record::Issuance;
use crate::keys::subject::secret_name;

/// The Secret's metadata as it is now; `None`: somebody else wrote first.
type Answer = Result<Option<ObjectMeta>, KeyError>;

impl Secrets {
    /// Writes the Secret, if nothing has its name.
    pub async fn create(
        &self,
        key: &ApiKey,
        made: &MadeKey,
        retiring: Option<&(Issuance, Timestamp)>,
        api: &WaterDataApi,
    ) -> Answer {
        let metadata = metadata(key, &made.issued, retiring, api);
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(secret_name(key)),
                namespace: key.namespace(),
                owner_references: owner(key).map(|owner| vec![owner]),
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
        retiring: Option<&(Issuance, Timestamp)>,
        api: &WaterDataApi,
        before: &StoredSecret,
    ) -> Answer {
        let data = json!(data(&made.plain, &made.issued, api));
        let metadata = metadata(key, &made.issued, retiring, api);
        self.patch(key, before, metadata, data).await
    }

    /// Brings everything but the text up to date, likewise. Fails if the answer does not show that: another try would
    /// be undone too.
    pub async fn amend(
        &self,
        key: &ApiKey,
        issued: &Issuance,
        api: &WaterDataApi,
        before: &StoredSecret,
    ) -> Answer {
        let data = json!(details(issued, api));
        let metadata = metadata(key, issued, before.retiring.as_ref(), api);
        let answer = self.patch(key, before, metadata, data).await?;
        let is_there = |meta: &ObjectMeta| match judge(&key.metadata, meta) {
            SecretLookup::Own(written) => is_as_declared(key, &written, api),
            _ => false,
        };
        if answer.as_ref().is_some_and(|meta| !is_there(meta)) {
            return Err(KeyError::Undone(METADATA));
        }
        Ok(answer)
    }

    /// Writes the Secret; others' labels, annotations, owners and data stay.
    async fn patch(
        &self,
        key: &ApiKey,
        before: &StoredSecret,
        metadata: SecretMetadata,
        data: Value,
    ) -> Answer {
        let owners = before.meta.owner_references.as_deref();
        let owners = owner_changes(key, owners.unwrap_or_default());
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
        answer(secrets.patch(name, &params, &Patch::Strategic(patch)).await)
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
