//! An ApiKey that shall be released, as it is stored: one that cannot be decoded names its keys too.

use std::collections::{BTreeSet, HashMap};

use kube::Client;
use kube::api::{DynamicObject, ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::Value;
use water_domain::{AccountId, KeyHash};
use water_keystore::Origin;
use water_resources::ApiKey;
use water_resources::api_key::ApiName;

use crate::client::each_stored;
use crate::keys::finalizer;

/// An ApiKey with the finalizer.
#[derive(Clone, Debug)]
pub struct FinalizedKey {
    pub meta: ObjectMeta,
    /// WaterDataApi where its keys were declared, by its status or, after [`super::search::find_holders`], by what the
    /// key directories hold; `None`: nowhere.
    pub api: Option<ApiName>,
    /// Whether its status shows that it had a key.
    pub had_a_key: bool,
    /// Reason for which it is not known where its keys were declared.
    pub unknown: Option<String>,
    /// The accounts that a tombstone of its keys bars. `None` for a brought hash whose account cannot
    /// be read.
    pub origin: Option<Origin>,
    pub hashes: BTreeSet<KeyHash>,
    /// Whether its keys shall be refused permanently.
    pub is_deleting: bool,
}

/// The ApiKeys that have the finalizer: all, or those of one namespace.
pub async fn finalized(
    client: &Client,
    namespace: Option<&str>,
) -> kube::Result<Vec<FinalizedKey>> {
    let made =
        |key: DynamicObject| finalizer::is_on(&key.metadata).then(|| FinalizedKey::from(key));
    each_stored::<ApiKey, _>(client, namespace, made).await
}

/// The ApiKeys by the WaterDataApi that their keys were declared to.
pub fn by_api(finalized: &[FinalizedKey]) -> HashMap<&ApiName, Vec<&FinalizedKey>> {
    let mut by_api: HashMap<&ApiName, Vec<&FinalizedKey>> = HashMap::new();
    for key in finalized {
        if let Some(api) = &key.api {
            by_api.entry(api).or_default().push(key);
        }
    }
    by_api
}

impl From<DynamicObject> for FinalizedKey {
    fn from(key: DynamicObject) -> Self {
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
            had_a_key: !status["current"].is_null(),
            unknown: None,
            hashes: hashes.chain(brought).collect(),
            origin,
            is_deleting: key.metadata.deletion_timestamp.is_some(),
            meta: key.metadata,
        }
    }
}

impl FinalizedKey {
    pub fn path(&self) -> String {
        format!(
            "{}/{}",
            self.meta.namespace.as_deref().unwrap_or_default(),
            self.meta.name.as_deref().unwrap_or_default()
        )
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

    fn finalized(spec: Value, status: Value) -> FinalizedKey {
        let key = json!({
            "apiVersion": "waterdata.dev/v1", "kind": "ApiKey",
            "metadata": { "name": "acme", "namespace": "team" },
            "spec": spec, "status": status,
        });
        FinalizedKey::from(serde_json::from_value::<DynamicObject>(key).unwrap())
    }

    #[test]
    fn every_hash_that_spec_and_status_name_counts() {
        let issued = |digit: &str| json!({ "hash": digit.repeat(64) });
        let brought = json!({ "hash": { "sha256": "a".repeat(64) } });
        let finalized = finalized(
            json!({ "accountId": "acme", "material": brought }),
            json!({
                "api": { "namespace": "water", "name": "water-data" },
                "current": issued("b"), "previous": issued("c"), "unrevealed": [issued("d")],
            }),
        );
        assert_eq!(finalized.hashes.len(), 4);
        assert_eq!(
            finalized.origin,
            Some(Origin::Brought("acme".parse().unwrap()))
        );
        assert_eq!(finalized.api.unwrap().name, "water-data");
    }

    #[test]
    fn a_brought_hash_without_a_readable_account_bars_nobody() {
        let brought = json!({ "hash": { "sha256": "a".repeat(64) } });
        let of = |spec| finalized(spec, Value::Null).origin;
        assert_eq!(of(json!({ "accountId": 7, "material": brought })), None);
        assert_eq!(of(json!({ "accountId": 7 })), Some(Origin::Generated));
    }
}
