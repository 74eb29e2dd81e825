//! Kinds ApiKey and WaterDataApi of the API server. The Rust types are the source of the definitions that the server
//! gets; feature `client`: asking it with deadlines.

pub mod api_key;
#[cfg(feature = "client")]
pub mod client;
pub mod condition;
pub mod exposure;
pub mod portal;
pub mod schema;
pub mod telemetry;
pub mod water_data_api;
pub mod workload;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;
use serde_json::json;

pub use api_key::{ApiKey, ApiKeySpec, ApiKeyStatus};
pub use condition::Condition;
pub use water_data_api::{WaterDataApi, WaterDataApiSpec, WaterDataApiStatus};

/// Returns the two definitions, in the order in which they are written and applied.
pub fn definitions() -> [CustomResourceDefinition; 2] {
    [ApiKey::crd(), WaterDataApi::crd()].map(|mut definition| {
        let versions = definition.spec.versions.iter_mut();
        let schemas =
            versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
        for schema in schemas {
            drop_nullable(schema);
            default_status(schema);
        }
        definition
    })
}

/// Adds a default status: an object that the operator has not reconciled has observed no generation. kstatus, and with
/// it `helm --wait` and Flux, would take an object without a status for one that is ready.
fn default_status(schema: &mut JSONSchemaProps) {
    if let Some(status) = schema
        .properties
        .as_mut()
        .and_then(|properties| properties.get_mut("status"))
    {
        status.default = Some(JSON(json!({ "observedGeneration": -1 })));
    }
}

/// Removes `nullable` from every field: the API server then drops a null as if it were left out, and `has()` in a rule
/// means what it says.
fn drop_nullable(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema
        .properties
        .iter_mut()
        .flatten()
        .for_each(|(_, property)| drop_nullable(property));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        drop_nullable(items);
    }
}

#[cfg(test)]
mod tests;
