//! Samples of the custom resources.

use serde_json::{Value, json};

/// The name of every WaterDataApi, since a world has one.
pub const API: &str = "water-data";
/// The WaterDataApi of a world.
pub const OBJECT: &str = "waterdataapi/water-data";

/// Returns a condition as `<status>/<reason>`.
pub fn shown(object: &Value, aspect: &str) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let condition = conditions.find(|condition| condition["type"] == aspect);
    condition.map_or_else(String::new, |condition| {
        format!("{}/{}", condition["status"], condition["reason"]).replace('"', "")
    })
}

/// Returns a WaterDataApi with the plans Enterprise and Free and an Ingress.
pub fn api() -> Value {
    json!({
        "apiVersion": "waterdata.dev/v1",
        "kind": "WaterDataApi",
        "metadata": { "name": API },
        "spec": {
            "image": { "registry": "registry.example/water", "tag": "1.2.3" },
            "postgres": { "secretRef": { "name": "postgres" } },
            "redis": { "secretRef": { "name": "redis" } },
            "plans": [
                { "name": "Enterprise", "access": "Allowed", "requestsPerMinute": 120, "requestsPerDay": 50000 },
                { "name": "Free", "access": "Denied" },
            ],
            "exposure": { "ingress": { "host": "water.example" } },
        },
    })
}

/// Returns the WaterDataApi with limits that no account meets.
pub fn unlimited() -> Value {
    let mut api = api();
    api["spec"]["plans"][0]["requestsPerMinute"] = json!(100_000);
    api["spec"]["plans"][0]["requestsPerDay"] = json!(100_000_000);
    api
}

/// Returns an ApiKey of account acme on plan Enterprise.
pub fn key(name: &str) -> Value {
    json!({
        "apiVersion": "waterdata.dev/v1",
        "kind": "ApiKey",
        "metadata": { "name": name },
        "spec": { "accountId": "acme", "plan": "Enterprise" },
    })
}

/// Returns an ApiKey of account acme, provided by its hash: 64 times that digit.
pub fn brought(name: &str, digit: char) -> Value {
    let mut key = key(name);
    key["spec"]["material"] = json!({ "hash": { "sha256": digit.to_string().repeat(64) } });
    key
}
