//! The parts of a WaterDataApi about its pods: images, sizes, rollouts.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{self, Quantities};

/// The images: `<registry>/water-gate:<tag>` and its siblings.
#[derive(KubeSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.tag != 'latest'").field_path(".tag").message(
    "spec.image.tag is latest, which names no version: name the version that is to run"
))]
pub struct Image {
    /// Registry and path, without a slash at the end.
    #[schemars(
        length(min = 1, max = 255),
        regex(
            pattern = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*$"
        )
    )]
    pub registry: String,
    /// The version. It is also the value of a label, so it is shorter than a registry allows.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    )]
    pub tag: String,
    /// Policy of pulls.
    #[serde(default)]
    pub pull_policy: PullPolicy,
    /// Secrets for a registry that asks for a password.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub pull_secrets: Vec<String>,
}

/// Policy by which the kubelet pulls an image.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    /// Pulls if the node lacks it.
    #[default]
    IfNotPresent,
    /// Pulls at each start.
    Always,
    /// Never pulls: it is on the node.
    Never,
}

/// Size of one component.
#[derive(KubeSchema, Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("!has(self.replicas) || !has(self.autoscaling)").message(
    "a component has both replicas and autoscaling, which would fight: remove one of them"
))]
pub struct Component {
    /// Number of pods; 2 when neither this nor `autoscaling` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: Option<i32>,
    /// Number of pods by load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// Resources of each pod; a missing one has a default.
    #[serde(default)]
    pub resources: Resources,
}

impl Component {
    /// Returns the number of pods: two, so that one can go.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(2)
    }
}

/// Number of pods by CPU load.
#[derive(KubeSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.minReplicas <= self.maxReplicas").field_path(".minReplicas").message(
    "a component's autoscaling.minReplicas is above maxReplicas: lower the one or raise the other"
))]
pub struct Autoscaling {
    /// Fewest pods.
    #[schemars(range(min = 1, max = 100))]
    pub min_replicas: i32,
    /// Most pods.
    #[schemars(range(min = 1, max = 100))]
    pub max_replicas: i32,
    /// CPU use in percent of the request that pods are added for.
    #[schemars(range(min = 1, max = 100))]
    pub target_cpu_percent: i32,
}

/// Requests and limits of a container.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// Amounts that the node reserves for it.
    #[serde(default)]
    #[schemars(schema_with = "schema::quantities")]
    pub requests: Quantities,
    /// The most that it may use.
    #[serde(default)]
    #[schemars(schema_with = "schema::quantities")]
    pub limits: Quantities,
}

/// The migration Job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Migrations {
    /// Number of further tries.
    #[serde(default = "three")]
    #[schemars(range(min = 0, max = 20))]
    pub backoff_limit: i32,
    /// Seconds after which it is given up.
    #[serde(default = "ten_minutes")]
    #[schemars(range(min = 10, max = 86_400))]
    pub active_deadline_seconds: i64,
}

fn three() -> i32 {
    3
}

/// Returns a time longer than any migration of a table that is served from memory.
fn ten_minutes() -> i64 {
    600
}

impl Default for Migrations {
    fn default() -> Self {
        Self {
            backoff_limit: three(),
            active_deadline_seconds: ten_minutes(),
        }
    }
}

/// Replacement of old versions by new ones.
#[derive(KubeSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.maxSurge > 0 || self.maxUnavailable > 0").message(
        "spec.rollout.maxSurge and spec.rollout.maxUnavailable are both 0, so no pod could ever be replaced: raise one"
    ),
    validation = Rule::new("self.minReadySeconds < self.progressDeadlineSeconds").field_path(".minReadySeconds")
        .message(
        "spec.rollout.minReadySeconds is not below spec.rollout.progressDeadlineSeconds, so every rollout would fail: \
         lower the one or raise the other"
    )
)]
pub struct Rollout {
    /// Pods above the desired number.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub max_surge: i32,
    /// Pods below the desired number.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub max_unavailable: i32,
    /// A new pod counts only after it was ready for this many seconds.
    #[serde(default = "five_seconds")]
    #[schemars(range(min = 0, max = 3600))]
    pub min_ready_seconds: i32,
    /// A rollout without progress for this many seconds has failed.
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 10, max = 86_400))]
    pub progress_deadline_seconds: i32,
    /// Reaction to a failed rollout.
    #[serde(default)]
    pub on_failure: OnFailure,
}

fn one() -> i32 {
    1
}

fn five_seconds() -> i32 {
    5
}

fn five_minutes() -> i32 {
    300
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            max_surge: one(),
            max_unavailable: 0,
            min_ready_seconds: five_seconds(),
            progress_deadline_seconds: five_minutes(),
            on_failure: OnFailure::default(),
        }
    }
}

/// Reaction to a failed rollout.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum OnFailure {
    /// Stays as it is, the old pods serving.
    #[default]
    Hold,
    /// Returns to the last good version, once.
    Rollback,
}
