//! The writes of a key's Secret: a POST, or a PATCH that names the version that was read.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};
use water_domain::PlainKey;
use water_resources::{ApiKey, WaterDataApi};

use super::metadata::{
    IssuedPair, PREVIOUS, RETIRES, SecretMetadata, base_url, data, metadata, owners,
};
use super::{Secrets, Written};
use crate::client::record_params;
use crate::conditions::RECORD_MANAGER;
use crate::keys::record::Issued;
use crate::keys::subject::secret_name;

#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// It is done; the Secret's metadata.
    Done(Box<ObjectMeta>),
    /// Somebody else wrote first.
    Overtaken,
    /// The API server does not accept it, by a quota or a policy; its words.
    Rejected(String),
}

impl Secrets {
    /// Writes the Secret, if nothing has its name.
    pub async fn create(
        &self,
        key: &ApiKey,
        plain: &PlainKey<'_>,
        pair: &IssuedPair<'_>,
        api: &WaterDataApi,
    ) -> kube::Result<Outcome> {
        let metadata = metadata(key, pair, api);
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
            data: Some(data(plain, pair.issued, api)),
            ..Secret::default()
        };
        let params = record_params();
        let created = self
            .beside::<Secret>(&key.metadata)
            .create(&params, &secret)
            .await;
        outcome(created.map(|secret| secret.metadata))
    }

    /// Writes another key over the one in the Secret, unless somebody wrote it since it was read.
    pub async fn replace(
        &self,
        key: &ApiKey,
        plain: &PlainKey<'_>,
        pair: &IssuedPair<'_>,
        api: &WaterDataApi,
        before: &Written,
    ) -> kube::Result<Outcome> {
        let data = json!(data(plain, pair.issued, api));
        self.patch(key, before, metadata(key, pair, api), data)
            .await
    }

    /// Brings everything but the text up to date, likewise.
    pub async fn amend(
        &self,
        key: &ApiKey,
        issued: &Issued,
        api: &WaterDataApi,
        before: &Written,
    ) -> kube::Result<Outcome> {
        let data = json!({ "base-url": ByteString(base_url(api).into_bytes()) });
        let metadata = metadata(key, &IssuedPair::of(issued, before.retiring.as_ref()), api);
        self.patch(key, before, metadata, data).await
    }

    /// Others' labels, annotations, owners and data stay.
    async fn patch(
        &self,
        key: &ApiKey,
        before: &Written,
        metadata: SecretMetadata,
        data: Value,
    ) -> kube::Result<Outcome> {
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
        let patched = secrets.patch(name, &params, &Patch::Merge(patch)).await;
        outcome(patched.map(|secret| secret.metadata))
    }
}

fn outcome(written: kube::Result<ObjectMeta>) -> kube::Result<Outcome> {
    match written {
        Ok(meta) => Ok(Outcome::Done(Box::new(meta))),
        Err(kube::Error::Api(status))
            if status.is_already_exists() || status.is_conflict() || status.is_not_found() =>
        {
            Ok(Outcome::Overtaken)
        }
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_invalid() => {
            Ok(Outcome::Rejected(status.message))
        }
        Err(error) => Err(error),
    }
}
