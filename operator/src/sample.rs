//! Objects that this crate's tests begin with.

use serde_json::json;
use water_resources::{ApiKey, ApiKeySpec, WaterDataApi, WaterDataApiSpec};

/// An ApiKey of account `acme` on plan Enterprise.
pub fn key(name: &str, namespace: &str) -> ApiKey {
    let spec = json!({ "accountId": "acme", "plan": "Enterprise" });
    let spec: ApiKeySpec = serde_json::from_value(spec).unwrap();
    let mut key = ApiKey::new(name, spec);
    key.metadata.namespace = Some(namespace.into());
    key.metadata.uid = Some(format!("uid-of-{name}"));
    key
}

/// The ApiKey `acme` at that version.
pub fn key_at(version: &str) -> ApiKey {
    let mut key = key("acme", "team");
    key.metadata.resource_version = Some(version.into());
    key
}

/// A WaterDataApi with the plans Enterprise and Free.
pub fn api(name: &str, namespace: &str) -> WaterDataApi {
    let spec: WaterDataApiSpec = serde_json::from_value(json!({
        "image": { "registry": "registry.example/water", "tag": "1.2.3" },
        "postgres": { "secretRef": { "name": "postgres" } },
        "redis": { "secretRef": { "name": "redis" } },
        "plans": [
            { "name": "Enterprise", "access": "Allowed", "requestsPerMinute": 120, "requestsPerDay": 50000 },
            { "name": "Free", "access": "Denied" },
        ],
    }))
    .unwrap();
    let mut api = WaterDataApi::new(name, spec);
    api.metadata.namespace = Some(namespace.into());
    api.metadata.uid = Some(format!("uid-of-{name}"));
    api
}
