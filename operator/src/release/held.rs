//! An ApiKey that is to be let go, as it is stored: one that cannot be decoded names its keys too.

use std::collections::BTreeSet;

use kube::api::{DynamicObject, ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::Value;
use water_domain::{AccountId, KeyHash};
use water_keystore::Origin;
use water_resources::api_key::IssuedAt;

/// An ApiKey with the finalizer.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its metadata.
    pub meta: ObjectMeta,
    /// Where its keys were declared; `None`: nowhere.
    pub api: Option<IssuedAt>,
    /// The accounts that a tombstone of its keys bars. `None` for a brought hash whose account cannot
    /// be read.
    pub origin: Option<Origin>,
    /// Every hash that its spec and its status name.
    pub hashes: BTreeSet<KeyHash>,
}

impl Held {
    /// Reads what it can.
    pub fn of(key: DynamicObject) -> Self {
        let (spec, status) = (&key.data["spec"], &key.data["status"]);
        let brought: Option<KeyHash> = parsed(&spec["material"]["hash"]["sha256"]);
        let account: Option<AccountId> = read(&spec["accountId"]);
        let origin = match (spec["material"]["hash"].is_null(), account) {
            (true, _) => Some(Origin::Generated),
            (false, account) => account.map(Origin::Brought),
        };
        let unrevealed = status["unrevealed"].as_array().into_iter().flatten();
        let announced = [&status["current"], &status["previous"]];
        let announced = announced.into_iter().chain(unrevealed);
        let hashes = announced.filter_map(|issued| parsed(&issued["hash"]));
        Self {
            api: read(&status["api"]),
            hashes: hashes.chain(brought).collect(),
            origin,
            meta: key.metadata,
        }
    }

    /// Namespace and name.
    pub fn path(&self) -> String {
        format!(
            "{}/{}",
            self.meta.namespace.as_deref().unwrap_or_default(),
            self.meta.name.as_deref().unwrap_or_default()
        )
    }

    /// Whether its keys are to be refused for good.
    pub fn is_deleting(&self) -> bool {
        self.meta.deletion_timestamp.is_some()
    }
}

fn parsed(field: &Value) -> Option<KeyHash> {
    field.as_str()?.parse().ok()
}

fn read<T: DeserializeOwned>(field: &Value) -> Option<T> {
    serde_json::from_value(field.clone()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn held(spec: Value, status: Value) -> Held {
        let key = json!({
            "apiVersion": "waterdata.dev/v1", "kind": "ApiKey",
            "metadata": { "name": "acme", "namespace": "team" },
            "spec": spec, "status": status,
        });
        Held::of(serde_json::from_value(key).unwrap())
    }

    #[test]
    fn every_hash_that_spec_and_status_name_counts() {
        let issued = |digit: &str| json!({ "hash": digit.repeat(64) });
        let brought = json!({ "hash": { "sha256": "a".repeat(64) } });
        let held = held(
            json!({ "accountId": "acme", "material": brought }),
            json!({
                "api": { "namespace": "water", "name": "water-data" },
                "current": issued("b"), "previous": issued("c"), "unrevealed": [issued("d")],
            }),
        );
        assert_eq!(held.hashes.len(), 4);
        assert_eq!(held.origin, Some(Origin::Brought("acme".parse().unwrap())));
        assert_eq!(held.api.unwrap().name, "water-data");
    }

    #[test]
    fn a_brought_hash_without_a_readable_account_bars_nobody() {
        let brought = json!({ "hash": { "sha256": "a".repeat(64) } });
        let of = |spec| held(spec, Value::Null).origin;
        assert_eq!(of(json!({ "accountId": 7, "material": brought })), None);
        assert_eq!(of(json!({ "accountId": 7 })), Some(Origin::Generated));
    }
}
