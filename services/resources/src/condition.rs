//! A condition of a resource's status, as `metav1.Condition` has it, every string bounded.

pub mod explanations;
mod reason;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use water_domain::Timestamp;

use crate::schema;
pub use reason::{ConditionType, Reason};

/// Status of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The state of the aspect is not known.
    Unknown,
}

/// An aspect of the resource's state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Name of the aspect.
    #[serde(rename = "type")]
    #[schemars(length(max = 64))]
    pub kind: String,
    /// Status of the aspect: True, False or Unknown.
    pub status: ConditionStatus,
    /// Reason for the status, as one word of a constant list.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// Reason for the status, as a sentence.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// Time at which the status last changed.
    #[schemars(schema_with = "schema::timestamp")]
    pub last_transition_time: Timestamp,
    /// The generation of the spec that this condition describes.
    #[schemars(range(min = 0))]
    pub observed_generation: i64,
}
