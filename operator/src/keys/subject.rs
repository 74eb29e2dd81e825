//! The ApiKey that a pass is about: whole, or the parts of one that can be decoded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use kube::core::{DeserializeGuard, PartialObjectMetaExt};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use water_domain::{AccountId, KeyHash, KeyId, PlanName, Timestamp};
use water_operator_core::key::facts::{Issue, Material, Restrictions, Rotation, Spec};
use water_operator_core::key::period;
use water_resources::api_key::{ApiKeyStatus, ApiName, Rotation as Declared};
use water_resources::{ApiKey, ApiKeySpec};

use super::memory::Memory;
use super::record::{self, Issuance};
use super::{finalizer, metadata};
use crate::client::{stored, undecodable_field};

/// Annotation that asks for a hash that was revoked: its first twelve hexadecimal digits, `@`, and the time of the
/// tombstone, which is lifted; no later one is.
pub const REINSTATE: &str = "waterdata.dev/reinstate";

/// An ApiKey, newest version known.
pub struct Subject {
    pub meta: ObjectMeta,
    /// Whether it has the finalizer.
    pub has_finalizer: bool,
    /// Whether it has the label of its account.
    pub has_label: bool,
    /// The whole object, or the reason for which it cannot be decoded.
    pub key: Result<ApiKey, String>,
    /// Status; of an object that cannot be decoded each field that can.
    pub status: ApiKeyStatus,
    /// Whether `status` names the WaterDataApi whose directory counts, as the directories were read, whatever it said
    /// before.
    pub is_found: bool,
    /// Whether the stored status names another WaterDataApi than `status`.
    pub is_misnamed: bool,
    /// The account that it names.
    pub account: Option<AccountId>,
    /// The hash that it brings along.
    pub brought: Option<KeyHash>,
    /// Restrictions that it puts on its keys; of an object that cannot be decoded, those that can.
    pub restrictions: Restrictions<KeyHash>,
}

impl Subject {
    /// Reads the ApiKey, with this leader's own writes laid over what the watch reported.
    pub async fn read(
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
                let live = stored::<ApiKey>(client, namespace).get(name).await?;
                let problem = undecodable_field::<ApiKey>(&live);
                let problem = problem.unwrap_or_else(|| invalid.error.clone());
                Ok(Self::fragment(invalid, &live.data, problem))
            }
        }
    }

    /// Subject of an ApiKey that can be decoded.
    pub fn whole(key: &ApiKey) -> Self {
        let brought = key.spec.material.hash.as_ref();
        let brought: Option<KeyHash> = brought.and_then(|brought| brought.sha256.parse().ok());
        let overlap = seconds(key.spec.rotation.overlap_seconds);
        Self {
            meta: key.metadata.clone(),
            has_finalizer: finalizer::is_on(&key.metadata),
            has_label: metadata::is_as_declared(key),
            status: key.status.clone().unwrap_or_default(),
            is_found: false,
            is_misnamed: false,
            account: Some(key.spec.account_id.clone()),
            brought,
            restrictions: Restrictions {
                suspended: key.spec.suspend,
                expires: key.spec.expiration_time,
                brought: brought.map(|brought| (brought, overlap)),
            },
            key: Ok(key.clone()),
        }
    }

    fn fragment(invalid: &InvalidObject, object: &Value, problem: String) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let brought = spec["material"]["hash"]["sha256"].as_str();
        let brought: Option<KeyHash> = brought.and_then(|text| text.parse().ok());
        // The API server writes the default into the object. What cannot be read ends nothing at once.
        let overlap = read(&spec["rotation"]["overlapSeconds"]);
        let overlap = overlap.unwrap_or_else(|| Declared::default().overlap_seconds);
        Self {
            meta: invalid.metadata.clone(),
            has_finalizer: finalizer::is_on(&invalid.metadata),
            has_label: false,
            key: Err(problem),
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
            is_found: false,
            is_misnamed: false,
            account: read(&spec["accountId"]),
            brought,
            restrictions: Restrictions {
                suspended: read(&spec["suspend"]).unwrap_or_default(),
                expires: read(&spec["expirationTime"]).unwrap_or_default(),
                brought: brought.map(|brought| (brought, seconds(overlap))),
            },
        }
    }

    /// The ApiKey with the WaterDataApi in its status whose directory counts: it holds its keys, or none does.
    pub fn held_by(mut self, holder: ApiName) -> Self {
        if let Ok(key) = &mut self.key {
            let status = key.status.get_or_insert_default();
            status.api = Some(holder.clone());
        }
        self.is_misnamed = self.status.api.as_ref() != Some(&holder);
        self.status.api = Some(holder);
        self.is_found = true;
        self
    }

    /// The WaterDataApi where its key was issued: the one whose directory was found to hold it, whatever the object
    /// says.
    pub fn issued_at(&self) -> Option<ApiName> {
        match &self.key {
            Ok(key) if !self.is_found => key.issued_at(),
            _ => self.status.api.clone(),
        }
    }

    /// Whether its spec names another WaterDataApi than its status.
    pub fn is_disputed(&self) -> bool {
        self.key.as_ref().is_ok_and(ApiKey::is_disputed)
    }

    /// The spec, if the object can be decoded.
    pub fn spec(&self) -> Option<&ApiKeySpec> {
        self.key.as_ref().ok().map(|key| &key.spec)
    }

    pub fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    pub fn namespace(&self) -> &str {
        self.meta.namespace.as_deref().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    /// The key id that it declares for the hash that it brings along.
    fn brought_id(&self) -> Option<KeyId> {
        let brought = self.spec()?.material.hash.as_ref()?;
        brought.key_id.as_ref()?.parse().ok()
    }

    /// The keys that the status names, the current one first. One that was edited by hand names fewer.
    pub fn announced(&self) -> Vec<Issuance> {
        let status = &self.status;
        let previous = status.previous.as_ref().map(|previous| &previous.issued);
        let named = status.current.iter().chain(&status.unrevealed);
        named.chain(previous).filter_map(Issuance::read).collect()
    }

    /// Every key that spec and status name, and those that its Secret or this leader names.
    pub fn issued(
        &self,
        others: impl Iterator<Item = Issuance>,
        now: Timestamp,
    ) -> BTreeMap<KeyHash, Issuance> {
        let announced = self.announced();
        let last = announced.iter().map(|issued| issued.revision).max();
        let brought = self.brought.map(|hash| Issuance {
            hash,
            key_id: self.brought_id().unwrap_or_else(|| hash.key_id()),
            revision: last.map_or(0, |last| last.saturating_add(1)),
            time: now,
        });
        // Of two that say something of one key the last counts.
        let all = brought.into_iter().chain(others);
        let mut issued: BTreeMap<KeyHash, Issuance> =
            all.map(|issued| (issued.hash, issued)).collect();
        // Others may write the status, and the Secret's annotations: where they differ, the one counts that has the key
        // replaced earlier.
        for mut announced in announced.into_iter().rev() {
            if let Some(known) = issued.get(&announced.hash)
                && Some(announced.hash) != self.brought
            {
                announced.revision = announced.revision.min(known.revision);
                announced.time = announced.time.min(known.time);
            }
            issued.insert(announced.hash, announced);
        }
        issued
    }

    /// Declaration of the ApiKey; `None`: the object or its hash cannot be decoded.
    pub fn declared(&self) -> Option<Spec<KeyHash, PlanName>> {
        let key = self.key.as_ref().ok()?;
        let material = match (&key.spec.material.hash, self.brought) {
            (None, _) => Material::Generated,
            (Some(_), brought) => Material::Brought(brought?),
        };
        Some(Spec {
            rules: record::declared(&key.spec),
            material,
            rotation: self.rotation()?,
            reinstate: self.reinstated(),
        })
    }

    /// Times at which it wants its key to be replaced.
    pub fn rotation(&self) -> Option<Rotation> {
        let declared = &self.spec()?.rotation;
        let overlap = seconds(declared.overlap_seconds);
        Some(Rotation {
            // The schema bounds it far below.
            revision: declared.revision.unwrap_or(0).try_into().unwrap_or(0),
            period: declared
                .period_seconds
                .map(|period| period::shortened(seconds(period), overlap, self.uid())),
            overlap,
        })
    }

    /// Revision that it declares; 0 without one.
    pub fn revision(&self) -> u32 {
        self.rotation().map_or(0, |rotation| rotation.revision)
    }

    /// Whether its annotation asks for the key of this hash, in a Secret that was restored.
    pub fn adopts(&self, hash: &KeyHash) -> bool {
        metadata::adoption(&self.meta).is_some_and(|digits| digits == hash.key_id().as_str())
    }

    /// Hashes that a deletion revokes: not a brought hash whose account cannot be read, since its tombstone would bar
    /// everyone.
    pub fn revocable(&self, issued: &BTreeMap<KeyHash, Issuance>) -> BTreeSet<KeyHash> {
        let unknown = self.brought.filter(|_| self.account.is_none());
        let hashes = issued.keys().copied();
        hashes.filter(|hash| Some(*hash) != unknown).collect()
    }

    /// Issue of the current key, by all that is known of it.
    pub fn issue(&self, issued: &BTreeMap<KeyHash, Issuance>) -> Option<Issue> {
        let current = issued.get(&record::ledger(&self.status).current?)?;
        Some(Issue {
            revision: current.revision,
            time: current.time,
        })
    }

    /// The time of the tombstone to lift, if the annotation is about the hash that it brings.
    fn reinstated(&self) -> Option<Timestamp> {
        let annotation = self.meta.annotations.as_ref()?.get(REINSTATE)?;
        let (digits, time) = annotation.split_once('@')?;
        let is_its_own = self.brought?.key_id().as_str() == digits;
        is_its_own.then_some(Timestamp::parse(time).ok()).flatten()
    }

    /// Reference for events.
    pub fn reference(&self) -> ObjectReference {
        let object = self.meta.clone().into_response_partial::<ApiKey>();
        ObjectReference {
            resource_version: self.meta.resource_version.clone(),
            ..object.object_ref(&())
        }
    }

    /// The name of its Secret; `None` for a brought key.
    pub fn secret_name(&self) -> Option<String> {
        match &self.key {
            Ok(key) if key.spec.material.hash.is_some() => None,
            Ok(key) => Some(secret_name(key)),
            Err(_) => self.status.secret_name.clone(),
        }
    }
}

/// The name of the Secret of an ApiKey whose key is generated.
pub fn secret_name(key: &ApiKey) -> String {
    let generated = key.spec.material.generated.as_ref();
    let named = generated.and_then(|generated| generated.secret_name.clone());
    named.unwrap_or_else(|| format!("{}-apikey", key.name_any()))
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.try_into().unwrap_or(0))
}

fn read<T: DeserializeOwned>(field: &Value) -> Option<T> {
    serde_json::from_value(field.clone()).ok()
}

#[cfg(test)]
mod tests;
