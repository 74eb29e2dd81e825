//! The ApiKey that a pass is about: whole, or what can be told of one that cannot be decoded.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{ApiResource, DynamicObject, ObjectMeta};
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use water_domain::{AccountId, KeyHash, KeyId, Timestamp};
use water_resources::api_key::{ApiKeyStatus, IssuedKey};
use water_resources::{ApiKey, ApiKeySpec};

use super::memory::Memory;
use super::record::Issued;
use super::{record, secret};

/// Asks for a hash that was revoked: its first twelve hexadecimal digits, `@`, and the time of the
/// tombstone, which is lifted; no later one is.
pub const REINSTATE: &str = "waterdata.dev/reinstate";

/// An ApiKey, newest version known.
pub struct Subject {
    /// Its metadata.
    pub meta: ObjectMeta,
    /// The whole object, or why it cannot be decoded.
    pub key: Result<ApiKey, String>,
    /// Its status; of an object that cannot be decoded each field that can.
    pub status: ApiKeyStatus,
    /// The account that it names.
    pub account: Option<AccountId>,
    /// The hash that it brings along.
    pub brought: Option<KeyHash>,
}

impl Subject {
    /// The ApiKey, with this leader's own writes laid over what the watch told.
    pub async fn of(
        watched: &DeserializeGuard<ApiKey>,
        memory: &Memory,
        client: &Client,
    ) -> kube::Result<Self> {
        match &watched.0 {
            Ok(key) => {
                let newer = memory.newer(key);
                Ok(Self::whole(newer.as_deref().unwrap_or(key)))
            }
            Err(invalid) => {
                let namespace = invalid.metadata.namespace.as_deref().unwrap_or_default();
                let name = invalid.metadata.name.as_deref().unwrap_or_default();
                let live = dynamic(client, namespace).get(name).await?;
                Ok(Self::fragment(invalid, &live.data))
            }
        }
    }

    /// One that can be decoded.
    pub fn whole(key: &ApiKey) -> Self {
        let brought = key.spec.material.hash.as_ref();
        Self {
            meta: key.metadata.clone(),
            status: key.status.clone().unwrap_or_default(),
            account: Some(key.spec.account_id.clone()),
            brought: brought.and_then(|brought| brought.sha256.parse().ok()),
            key: Ok(key.clone()),
        }
    }

    fn fragment(invalid: &InvalidObject, object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let brought = spec["material"]["hash"]["sha256"].as_str();
        Self {
            meta: invalid.metadata.clone(),
            key: Err(invalid.error.clone()),
            status: ApiKeyStatus {
                observed_generation: read(&status["observedGeneration"]),
                api: read(&status["api"]),
                key_id: read(&status["keyId"]),
                current: read(&status["current"]),
                previous: read(&status["previous"]),
                unrevealed: read(&status["unrevealed"]).unwrap_or_default(),
                secret_name: read(&status["secretName"]),
                conditions: read(&status["conditions"]).unwrap_or_default(),
                ..ApiKeyStatus::default()
            },
            account: read(&spec["accountId"]),
            brought: brought.and_then(|text| text.parse().ok()),
        }
    }

    /// The spec, if the object can be decoded.
    pub fn spec(&self) -> Option<&ApiKeySpec> {
        self.key.as_ref().ok().map(|key| &key.spec)
    }

    /// The uid.
    pub fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        self.meta.namespace.as_deref().unwrap_or_default()
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    /// The key id that it declares for the hash that it brings along.
    pub fn brought_id(&self) -> Option<KeyId> {
        let brought = self.spec()?.material.hash.as_ref()?;
        brought.key_id.as_ref()?.parse().ok()
    }

    /// The keys that the status names, the current one first.
    pub fn announced(&self) -> Vec<Issued> {
        announced(&self.status)
    }

    /// The time of the tombstone to lift, if the annotation is about the hash that it brings.
    pub fn reinstated(&self) -> Option<Timestamp> {
        let annotation = self.meta.annotations.as_ref()?.get(REINSTATE)?;
        let (digits, time) = annotation.split_once('@')?;
        let is_its_own = self.brought?.key_id().as_str() == digits;
        is_its_own.then_some(Timestamp::parse(time).ok()).flatten()
    }

    /// As events refer to it.
    pub fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(ApiKey::api_version(&()).into()),
            kind: Some(ApiKey::kind(&()).into()),
            name: self.meta.name.clone(),
            namespace: self.meta.namespace.clone(),
            uid: self.meta.uid.clone(),
            resource_version: self.meta.resource_version.clone(),
            field_path: None,
        }
    }

    /// The name of its Secret; `None` for a brought key.
    pub fn secret_name(&self) -> Option<String> {
        match self.spec() {
            Some(spec) if spec.material.hash.is_some() => None,
            Some(spec) => Some(secret::name(self.name(), spec)),
            None => self.status.secret_name.clone(),
        }
    }
}

/// The keys that a status names, the current one first. One that was edited by hand names fewer.
pub fn announced(status: &ApiKeyStatus) -> Vec<Issued> {
    let previous = status.previous.as_ref().map(record::issued_before);
    let named = status.current.iter().chain(&status.unrevealed);
    let named = named.cloned().chain(previous);
    named
        .filter_map(|issued: IssuedKey| Issued::read(&issued))
        .collect()
}

/// ApiKeys as they are stored, whatever their form.
pub fn dynamic(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let kind = ApiResource::erase::<ApiKey>(&());
    Api::namespaced_with(client.clone(), namespace, &kind)
}

fn read<T: DeserializeOwned>(field: &Value) -> Option<T> {
    serde_json::from_value(field.clone()).ok()
}
