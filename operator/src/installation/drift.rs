//! Whether a live object still is as it was made: what is ours counts, what others added does not.

use serde_json::Value;

/// Whether `live` has everything that is wanted. Items of a list are found by their name where they
/// have one, so that what others injected beside ours does not count.
pub fn is_as(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted
            .iter()
            .all(|(key, value)| is_as(value, live.get(key).unwrap_or(&Value::Null))),
        (Value::Array(wanted), Value::Array(live)) if is_named(wanted) => {
            wanted.iter().all(|item| {
                let found = live.iter().find(|live| live["name"] == item["name"]);
                found.is_some_and(|found| is_as(item, found))
            })
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted
                    .iter()
                    .zip(live)
                    .all(|(wanted, live)| is_as(wanted, live))
        }
        // The API server keeps nothing that is empty.
        (Value::String(wanted), Value::Null) => wanted.is_empty(),
        (Value::Array(wanted), Value::Null) => wanted.is_empty(),
        _ => wanted == live,
    }
}

fn is_named(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| item["name"].is_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted() -> Value {
        json!({ "spec": { "ports": [{ "name": "http", "port": 80 }], "list": [1, 2], "none": [], "text": "" } })
    }

    #[test]
    fn defaults_and_additions_of_others_are_no_drift() {
        let live = json!({
            "spec": {
                "ports": [{ "name": "mesh", "port": 15 }, { "name": "http", "port": 80, "protocol": "TCP" }],
                "list": [1, 2],
                "type": "ClusterIP",
            },
            "status": {},
        });
        assert!(is_as(&wanted(), &live));
    }

    #[test]
    fn a_changed_added_or_missing_field_is_drift() {
        for spec in [
            json!({ "ports": [{ "name": "http", "port": 81 }], "list": [1, 2] }),
            json!({ "ports": [], "list": [1, 2] }),
            json!({ "ports": [{ "name": "http", "port": 80 }], "list": [1, 2, 3] }),
            json!({ "ports": [{ "name": "http", "port": 80 }], "list": [1, 2], "none": [{}] }),
            json!({ "list": [1, 2] }),
        ] {
            assert!(!is_as(&wanted(), &json!({ "spec": spec })), "{spec}");
        }
    }
}
