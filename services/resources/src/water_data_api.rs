//! `WaterDataApi` (`wda`): one installation of the gate and the two services, and its plans.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use water_domain::PlanName;

use crate::exposure::{Exposure, NetworkPolicySpec};
use crate::portal::Portal;
use crate::schema;
use crate::telemetry::Telemetry;
use crate::workload::{Component, Image, Migrations, Rollout};
use crate::{Condition, exposure::Switch};

/// An installation of the gate and the two services: images, stores, plans and exposure.
#[derive(CustomResource, KubeSchema, Clone, PartialEq, Debug, Serialize, Deserialize)]
#[kube(
    group = "waterdata.dev",
    version = "v1",
    kind = "WaterDataApi",
    plural = "waterdataapis",
    shortname = "wda",
    category = "waterdata",
    namespaced,
    status = "WaterDataApiStatus",
    derive = "PartialEq",
    doc = "An installation of the water data API: its gate, its services and its plans",
    printcolumn(name = "VERSION", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "READY", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "REASON", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "DATA", type_ = "string", json_path = ".status.conditions[?(@.type==\"DataLoaded\")].status"),
    printcolumn(name = "KEYS", type_ = "integer", json_path = ".status.apiKeys.active"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // Priority 1: shown by `--output=wide`.
    printcolumn(name = "MESSAGE", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$')").message(
        "metadata.name is not 1 to 40 lower-case letters, digits or '-' beginning with a letter, \
         and Services are named after it: choose another name"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WaterDataApiSpec {
    /// Stops rollouts; keys are still issued and revoked.
    #[serde(default)]
    pub paused: bool,
    /// The images.
    pub image: Image,
    /// Size of each part.
    #[serde(default)]
    pub components: Components,
    /// Addresses of PostgreSQL: keys `owner-url`, `writer-url`, `reader-url`, optionally `replica-url` (a read replica
    /// for the histories) and `ca.crt`.
    pub postgres: Postgres,
    /// Addresses of Redis: keys `operator-url`, `gate-url`, with `portal` also `portal-url`, optionally `ca.crt`.
    pub redis: Store,
    /// The plans that ApiKeys may name.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub plans: Vec<PlanSpec>,
    /// ApiKeys that are accepted.
    #[serde(default)]
    pub api_keys: ApiKeys,
    /// Replacement of old versions by new ones.
    #[serde(default)]
    pub rollout: Rollout,
    /// Access of clients to the gate.
    #[serde(default)]
    pub exposure: Exposure,
    /// The NetworkPolicies of the pods.
    #[serde(default)]
    pub network_policy: NetworkPolicySpec,
    /// PodDisruptionBudgets, which let a drain evict one pod of a component at a time.
    #[serde(default)]
    pub pod_disruption_budget: Switch,
    /// Logs and traces of the pods.
    #[serde(default)]
    pub telemetry: Telemetry,
    /// The account holders' portal. Left out: no portal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub portal: Option<Portal>,
}

/// Size of each part.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Components {
    /// The proxy that authenticates and limits.
    #[serde(default)]
    pub gate: Component,
    /// The service of stress and risk.
    #[serde(default)]
    pub departements: Component,
    /// The service of the accounts' histories.
    #[serde(default)]
    pub history: Component,
    /// The Job that brings the database's schema up to date.
    #[serde(default)]
    pub migrations: Migrations,
}

/// A store that is not part of this installation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Store {
    /// The Secret with its URLs.
    pub secret_ref: SecretRef,
}

/// PostgreSQL outside of the cluster's resources, and how much of it each pod may take.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Postgres {
    /// The Secret with its URLs.
    pub secret_ref: SecretRef,
    /// Most connections of each pod.
    #[serde(default)]
    pub connections: PodConnections,
}

/// Most connections of each pod. With the defaults, two pods of each service, a load and a migration fit into
/// PostgreSQL's own default of 100, even while a rollout doubles them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PodConnections {
    /// Connections of a pod of the service of stress and risk; one more listens for changes.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 1000))]
    pub departements: i32,
    /// Connections of a pod of the service of the accounts' histories.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 1000))]
    pub history: i32,
}

fn two() -> i32 {
    2
}

fn eight() -> i32 {
    8
}

impl Default for PodConnections {
    fn default() -> Self {
        Self {
            departements: two(),
            history: eight(),
        }
    }
}

/// A Secret of the same namespace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub name: String,
}

/// A plan: its access to the API, and its limits.
#[derive(KubeSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "self.access != 'Allowed' || (has(self.requestsPerMinute) && has(self.requestsPerDay))"
    ).message(
        "a plan in spec.plans with access Allowed lacks a limit: set requestsPerMinute and requestsPerDay"
    ),
    validation = Rule::new(
        "self.access != 'Denied' || (!has(self.requestsPerMinute) && !has(self.requestsPerDay))"
    ).message(
        "a plan in spec.plans with access Denied has a limit that could never be used: \
         remove requestsPerMinute and requestsPerDay"
    )
)]
pub struct PlanSpec {
    /// The name that ApiKeys refer to.
    pub name: PlanName,
    /// Access to the API.
    pub access: Access,
    /// Accepted requests in any 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub requests_per_minute: Option<u32>,
    /// Accepted requests in a UTC day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub requests_per_day: Option<u32>,
}

/// Access of a plan to the API.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Access {
    /// Requests are accepted up to the limits.
    Allowed,
    /// Requests are answered 403.
    Denied,
}

/// ApiKeys that are accepted.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeys {
    /// The namespaces whose ApiKeys are accepted.
    #[serde(default)]
    pub allowed_namespaces: AllowedNamespaces,
    /// Accounts that a namespace may name.
    #[serde(default)]
    pub account_binding: AccountBinding,
}

/// The namespaces whose ApiKeys are accepted.
#[derive(KubeSchema, Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(self.from == 'Selector') == has(self.selector)").message(
    "spec.apiKeys.allowedNamespaces.selector goes with from: Selector and with nothing else: \
     set both, or remove the selector"
))]
pub struct AllowedNamespaces {
    /// Selection of the namespaces.
    #[serde(default)]
    pub from: From,
    /// The labels of the namespaces, with `from: Selector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<NamespaceSelector>,
}

/// Selection of namespaces.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum From {
    /// The WaterDataApi's own namespace.
    #[default]
    Same,
    /// Namespaces with the selector's labels.
    Selector,
    /// Any namespace.
    All,
}

/// Namespaces by label.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Labels that a namespace must have.
    #[schemars(schema_with = "schema::match_labels")]
    pub match_labels: BTreeMap<String, String>,
}

/// Accounts that a namespace may name.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum AccountBinding {
    /// Any account.
    #[default]
    None,
    /// Accounts that the namespace's labels `account.waterdata.dev/<accountId>` name, and no others.
    NamespaceLabel,
}

/// The state of a WaterDataApi, written by the operator.
#[derive(KubeSchema, Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaterDataApiStatus {
    /// The generation of the spec that this status describes; -1 until the operator has reconciled the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub observed_generation: Option<i64>,
    /// The version that all components run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,
    /// The version that is being rolled out, or the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub target_version: Option<String>,
    /// The pods of each component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub components: Vec<ComponentStatus>,
    /// Numbers of ApiKeys.
    #[serde(default)]
    pub api_keys: ApiKeyCounts,
    /// Distinguishes the Redis that holds the whole key directory from another one, which is rebuilt before it is used.
    /// Empty while none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub directory_store: Option<String>,
    /// Distinguishes the Redis in which the key directory is completed next, while directoryStore is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub next_directory_store: Option<String>,
    /// The conditions, such as Available, Progressing, DirectorySynced and Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// The pods of a component.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComponentStatus {
    /// gate, departements, history or portal.
    #[schemars(length(max = 63))]
    pub name: String,
    /// The number of pods that is wanted.
    pub desired: i32,
    /// Ready pods.
    pub ready: i32,
    /// Pods of the latest template.
    pub updated: i32,
    /// The image of the latest template.
    #[schemars(length(max = 512))]
    pub image: String,
}

/// Numbers of the ApiKeys that refer to a WaterDataApi.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApiKeyCounts {
    /// Total number.
    pub total: u32,
    /// ApiKeys whose requests are accepted.
    pub active: u32,
    /// ApiKeys whose declared state is in force.
    pub synced: u32,
}
