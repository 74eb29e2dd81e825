//! One condition of a resource's status, as `metav1.Condition` has it, every string bounded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use water_domain::Timestamp;

use crate::schema;

/// Whether the condition holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known.
    Unknown,
}

/// One aspect of the resource's state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which aspect.
    #[serde(rename = "type")]
    #[schemars(length(max = 64))]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one word of a constant list.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// Why, as a sentence.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// When the status last changed.
    #[schemars(schema_with = "schema::timestamp")]
    pub last_transition_time: Timestamp,
    /// The generation of the spec that this speaks of.
    #[schemars(range(min = 0))]
    pub observed_generation: i64,
}
