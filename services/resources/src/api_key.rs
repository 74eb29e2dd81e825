//! `ApiKey` (`wdkey`): one key of one account, for one WaterDataApi.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use water_domain::{AccountId, CANDIDATES, PlanName, REISSUES, Timestamp};

use crate::Condition;
use crate::condition::{ConditionType, Reason};
use crate::schema;

/// An API key: its account, its plan, and when it is valid.
#[derive(CustomResource, KubeSchema, Clone, PartialEq, Debug, Serialize, Deserialize)]
#[kube(
    group = "waterdata.dev",
    version = "v1",
    kind = "ApiKey",
    plural = "apikeys",
    shortname = "wdkey",
    category = "waterdata",
    namespaced,
    status = "ApiKeyStatus",
    derive = "PartialEq",
    doc = "One API key of one account",
    printcolumn(name = "ACCOUNT", type_ = "string", json_path = ".spec.accountId"),
    printcolumn(name = "PLAN", type_ = "string", json_path = ".spec.plan"),
    printcolumn(name = "READY", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "REASON", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "KEY-ID", type_ = "string", json_path = ".status.keyId"),
    // A string column: `date` prints times to come as <invalid>.
    printcolumn(name = "EXPIRES", type_ = "string", json_path = ".spec.expirationTime"),
    printcolumn(name = "LAST-USED", type_ = "date", json_path = ".status.lastUsedTime"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // Priority 1: shown by `--output=wide`.
    printcolumn(name = "SECRET", type_ = "string", json_path = ".status.secretName", priority = 1),
    printcolumn(name = "ROTATES", type_ = "string", json_path = ".status.nextRotationTime", priority = 1),
    printcolumn(name = "MESSAGE", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1),
    selectable = ".spec.accountId",
    selectable = ".spec.plan",
    selectable = ".status.keyId",
    validation = Rule::new("self.metadata.name.size() <= 52").message(
        "metadata.name has more than 52 characters, and the key's Secret is named after it: choose a shorter name"
    ),
    // Here and not in the spec: the default is made of the object's name, and may be spelled out.
    validation = Rule::new(
        "!has(self.spec.material.generated) || !has(oldSelf.spec.material.generated) || \
         (has(self.spec.material.generated.secretName) ? self.spec.material.generated.secretName \
         : self.metadata.name + '-apikey') == \
         (has(oldSelf.spec.material.generated.secretName) ? oldSelf.spec.material.generated.secretName \
         : oldSelf.metadata.name + '-apikey')"
    ).field_path(".spec.material.generated.secretName").message(
        "spec.material.generated.secretName cannot be changed, since the key's text is in that Secret alone: \
         create another ApiKey"
    ),
    // `namespace` is a reserved word of CEL, which knows the field as `__namespace__`.
    validation = Rule::new(
        "!has(self.spec.apiRef) || has(oldSelf.spec.apiRef) || !has(oldSelf.status) || !has(oldSelf.status.api) || \
         (self.spec.apiRef.name == oldSelf.status.api.name && \
         (!has(self.spec.apiRef.__namespace__) || \
         self.spec.apiRef.__namespace__ == oldSelf.status.api.__namespace__))"
    ).message(
        "spec.apiRef names another WaterDataApi than status.api, where the key was issued: \
         write the same, or create another ApiKey"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.accountId == oldSelf.accountId").field_path(".accountId").message(
        "spec.accountId cannot be changed, since a key belongs to one account for life: \
         create another ApiKey for the other account"
    ),
    validation = Rule::new("!has(oldSelf.apiRef) || (has(self.apiRef) && self.apiRef == oldSelf.apiRef)")
        .field_path(".apiRef").message(
        "spec.apiRef cannot be changed, since the key is known to that WaterDataApi only: \
         create another ApiKey for the other one"
    ),
    validation = Rule::new(
        "!has(self.notBefore) || !has(self.expirationTime) || self.notBefore < self.expirationTime"
    ).field_path(".expirationTime").message(
        "spec.expirationTime is not after spec.notBefore, so the key would never work: set a later one"
    ),
    validation = Rule::new("has(self.material.generated) == has(oldSelf.material.generated)")
        .field_path(".material").message(
        "spec.material cannot switch between generated and hash, since that would be another key: \
         create another ApiKey"
    ),
    validation = Rule::new(
        "!has(self.material.hash) || (!has(self.rotation.revision) && !has(self.rotation.periodSeconds))"
    ).field_path(".rotation").message(
        "spec.rotation.revision and spec.rotation.periodSeconds are for generated keys only: \
         remove them, and rotate a brought key by editing spec.material.hash.sha256"
    ),
    validation = Rule::new(
        "!has(self.material.hash) || !has(oldSelf.material.hash) || \
         self.material.hash.sha256 != oldSelf.material.hash.sha256 || \
         (has(self.material.hash.keyId) == has(oldSelf.material.hash.keyId) && \
         (!has(self.material.hash.keyId) || self.material.hash.keyId == oldSelf.material.hash.keyId))"
    ).field_path(".material.hash.keyId").message(
        "spec.material.hash.keyId cannot be changed alone, since it names that key in logs and last uses: \
         change it together with sha256"
    ),
    validation = Rule::new(
        "!has(self.material.hash) || !has(oldSelf.material.hash) || \
         self.material.hash.sha256 == oldSelf.material.hash.sha256 || \
         !has(self.material.hash.keyId) || !has(oldSelf.material.hash.keyId) || \
         self.material.hash.keyId != oldSelf.material.hash.keyId"
    ).field_path(".material.hash.keyId").message(
        "spec.material.hash.keyId is still that of the key before, and names one key in logs and last uses: \
         give the new key another, or leave it out"
    ),
    validation = Rule::new(
        "!has(oldSelf.rotation.revision) || \
         (has(self.rotation.revision) && self.rotation.revision >= oldSelf.rotation.revision)"
    ).field_path(".rotation.revision").message(
        "spec.rotation.revision cannot decrease, since a rotation cannot be undone: keep it, or raise it to rotate"
    )
)]
pub struct ApiKeySpec {
    /// The account. The key reads its history, and requests count against its limits.
    pub account_id: AccountId,
    /// The plan that sets the limits: a name in the WaterDataApi's `plans`.
    pub plan: PlanName,
    /// The WaterDataApi that accepts the key. Left out: the only one that admits this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_ref: Option<ApiRef>,
    /// Purpose of the key, in the owner's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
    /// Refuses the key while true.
    #[serde(default)]
    pub suspend: bool,
    /// The key is refused before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::timestamp")]
    pub not_before: Option<Timestamp>,
    /// The key is refused from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::timestamp")]
    pub expiration_time: Option<Timestamp>,
    /// Origin of the key.
    #[serde(default)]
    pub material: Material,
    /// Replacement of the key by new ones.
    #[serde(default)]
    pub rotation: Rotation,
}

/// A WaterDataApi by name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApiRef {
    /// Name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Namespace. Left out: the ApiKey's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

impl ApiRef {
    /// Whether an ApiKey that was issued at this WaterDataApi may name it so.
    pub fn is_of(&self, issued: &ApiName) -> bool {
        let namespace = self.namespace.as_ref();
        self.name == issued.name && namespace.is_none_or(|namespace| *namespace == issued.namespace)
    }

    /// Returns the WaterDataApi that an ApiKey of the namespace names.
    pub fn place(&self, own: &str) -> ApiName {
        ApiName {
            namespace: self.namespace.clone().unwrap_or_else(|| own.to_owned()),
            name: self.name.clone(),
        }
    }
}

/// Origin of the key: exactly one member.
#[derive(KubeSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.generated) != has(self.hash)").message(
    "spec.material needs exactly one of generated and hash: remove one, or leave material out for a generated key"
))]
pub struct Material {
    /// The operator makes the key and writes it into a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<GeneratedKey>,
    /// Your own key, named by its hash; its text never enters the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Brought>,
}

impl Default for Material {
    fn default() -> Self {
        Self {
            generated: Some(GeneratedKey::default()),
            hash: None,
        }
    }
}

/// A key that the operator makes.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GeneratedKey {
    /// Name of the Secret that gets the key. Left out: the ApiKey's name and `-apikey`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub secret_name: Option<String>,
    /// Policy for the Secret when the ApiKey is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// Policy for the Secret when the ApiKey is deleted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Deletes it with the ApiKey.
    #[default]
    Delete,
    /// Keeps it; the key in it is refused.
    Retain,
}

/// Your own key, named by its hash.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Brought {
    /// SHA-256 of the whole key as 64 lower-case hexadecimal digits.
    #[schemars(schema_with = "schema::sha256")]
    pub sha256: String,
    /// The key's public name, of 12 letters or digits. Left out: the first 12 digits of the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^[0-9A-Za-z]{12}$"))]
    pub key_id: Option<String>,
}

/// Replacement of the key by new ones.
#[derive(KubeSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "!has(self.periodSeconds) || self.overlapSeconds < self.periodSeconds"
).field_path(".overlapSeconds").message(
    "spec.rotation.overlapSeconds is not below spec.rotation.periodSeconds, so two old keys would work at once: \
     shorten the overlap or lengthen the period"
))]
pub struct Rotation {
    /// Number that is raised to replace the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub revision: Option<i64>,
    /// Seconds after which the key is replaced, or up to a tenth and at most an hour earlier: keys that were issued
    /// together are not replaced together. At least an hour, since each replaced key is remembered for 90 days. Left
    /// out: never by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 3600, max = 315_360_000))]
    pub period_seconds: Option<i64>,
    /// Seconds for which a replaced key works on. 0 cuts it at once.
    #[serde(default = "one_day")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub overlap_seconds: i64,
}

/// Long enough for a deployment that reads its Secret once a day.
fn one_day() -> i64 {
    86_400
}

impl Default for Rotation {
    fn default() -> Self {
        Self {
            revision: None,
            period_seconds: None,
            overlap_seconds: one_day(),
        }
    }
}

/// The state of an ApiKey, written by the operator.
#[derive(KubeSchema, Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyStatus {
    /// The generation of the spec that this status describes; -1 until the operator has reconciled the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub observed_generation: Option<i64>,
    /// The WaterDataApi that accepts the key; decided once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<ApiName>,
    /// The last state that every gate has acknowledged: a reason of `Ready`, such as Active, Suspended or Expired. It
    /// stays while a change waits for a gate or for Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub last_acknowledged_state: Option<String>,
    /// The plan of the current key, as every gate has acknowledged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub plan: Option<String>,
    /// The public name of the current key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12))]
    pub key_id: Option<String>,
    /// The key in the Secret. Before the first Secret: the key that is being published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<IssuedKey>,
    /// The key that it replaced, or a brought hash that is being replaced, while that still works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<RetiringKey>,
    /// Keys that were announced and are not in the Secret, the latest first. A leader that stopped may still write one
    /// of them into the Secret, so they stay published until the Secret holds another key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = CANDIDATES))]
    pub unrevealed: Vec<IssuedKey>,
    /// The last keys that were issued because the Secret was deleted or edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = REISSUES))]
    pub reissues: Vec<Reissue>,
    /// The Secret that holds a generated key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub secret_name: Option<String>,
    /// The Secret's version as the operator wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub secret_resource_version: Option<String>,
    /// The last request with the key, accurate to ten minutes. Requests over the limits count too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::timestamp")]
    pub last_used_time: Option<Timestamp>,
    /// Time at which the key will be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::timestamp")]
    pub next_rotation_time: Option<Timestamp>,
    /// Gate pods that have not acknowledged the last change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 253)))]
    pub waiting_for: Vec<String>,
    /// The conditions: Accepted, SecretReady, Synced, Ready, Reconciling, Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// The label of keys' Secrets, by which they are watched; its value is the ApiKey's name.
pub const KEY_LABEL: &str = "waterdata.dev/api-key";
/// The finalizer that keeps an ApiKey until its key is revoked.
pub const FINALIZER: &str = "waterdata.dev/revoke";

/// Name and namespace of a WaterDataApi, such as the one that a key was issued for.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct ApiName {
    /// Namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name.
    #[schemars(length(max = 63))]
    pub name: String,
}

impl ApiKey {
    /// The WaterDataApi where its key was issued: the one in the status, unless the spec names another one. The schema
    /// refuses that, so that somebody else than the operator has written the status, now or before the spec followed
    /// it. Of the latter the operator reports `ApiMismatch`, once it has found the key and put the name back, or why
    /// the key is withdrawn there.
    pub fn issued_at(&self) -> Option<ApiName> {
        let status = self.status.as_ref()?;
        let told = status.api.as_ref()?;
        let own = self.metadata.namespace.as_deref().unwrap_or_default();
        match &self.spec.api_ref {
            Some(named) if !named.is_of(told) && !is_refused(status) => Some(named.place(own)),
            _ => Some(told.clone()),
        }
    }

    /// Whether the spec names another WaterDataApi than the status.
    pub fn is_disputed(&self) -> bool {
        let told = self.status.as_ref().and_then(|status| status.api.as_ref());
        let names = self.spec.api_ref.as_ref().zip(told);
        names.is_some_and(|(named, told)| !named.is_of(told))
    }

    /// Whether spec or status name this WaterDataApi.
    pub fn may_be_at(&self, place: &ApiName) -> bool {
        let told = self.status.as_ref().and_then(|status| status.api.as_ref());
        told == Some(place) || self.is_issued_at(place)
    }

    /// Whether its key was issued at this WaterDataApi.
    pub fn is_issued_at(&self, place: &ApiName) -> bool {
        self.issued_at().as_ref() == Some(place)
    }
}

/// Whether the status reports that the WaterDataApi in it refuses the ApiKey.
fn is_refused(status: &ApiKeyStatus) -> bool {
    let reasons = [
        Reason::ApiMismatch,
        Reason::NamespaceNotAdmitted,
        Reason::AccountNotBound,
    ];
    let is_refusal = |condition: &Condition| {
        condition.kind == ConditionType::Accepted.as_str()
            && reasons
                .iter()
                .any(|reason| condition.reason == reason.as_str())
    };
    status.conditions.iter().any(is_refusal)
}

/// A key that was published.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuedKey {
    /// `spec.rotation.revision` when it was issued.
    #[schemars(range(min = 0))]
    pub revision: i64,
    /// SHA-256 of the key.
    #[schemars(schema_with = "schema::sha256")]
    pub hash: String,
    /// Public name of the key.
    #[schemars(length(max = 12))]
    pub key_id: String,
    /// Time at which it was published.
    #[schemars(schema_with = "schema::timestamp")]
    pub issued_time: Timestamp,
}

/// A key that was issued because the Secret was deleted or edited.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reissue {
    /// Public name of the key.
    #[schemars(length(max = 12))]
    pub key_id: String,
    /// Time at which it was announced, by Redis' clock.
    #[schemars(schema_with = "schema::timestamp")]
    pub time: Timestamp,
}

/// A key that works until its retirement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetiringKey {
    /// The key.
    #[serde(flatten)]
    pub issued: IssuedKey,
    /// Time from which it is refused.
    #[schemars(schema_with = "schema::timestamp")]
    pub retire_time: Timestamp,
}
