//! The parts of the schema that no attribute can express: times, quantities, key hashes and lists with a key.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{Schema, SchemaGenerator, json_schema};
use std::collections::BTreeMap;

/// Container resources by name, such as `cpu: 100m`.
pub type Quantities = BTreeMap<String, IntOrString>;

/// Schema of a time of RFC 3339. Longer than any printed moment, so that the API server can bound the cost of rules.
pub(crate) fn timestamp(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "maxLength": 64 })
}

/// Schema of a SHA-256 as 64 lower-case hexadecimal digits.
pub(crate) fn sha256(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$", "maxLength": 64 })
}

/// Schema of quantities by resource name.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": "^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$",
            "maxLength": 32,
        },
    })
}

/// Schema of a label selector, of which only `matchLabels` is read.
pub(crate) fn match_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": { "type": "string", "maxLength": 63 },
    })
}

/// Schema of annotations that are handed on to a child.
pub(crate) fn annotations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 4096 },
    })
}
