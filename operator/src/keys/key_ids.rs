//! Choice of the ApiKey that gets a key id which several declare. Last uses are counted by key id.

use kube::Resource;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use water_resources::ApiKey;
use water_resources::api_key::{ApiKeyStatus, ApiName};

use super::claim::{Age, Claim};

/// Whether another ApiKey of the WaterDataApi has the key id that this one declares.
pub fn is_taken(key: &ApiKey, place: &ApiName, keys: &Store<DeserializeGuard<ApiKey>>) -> bool {
    let declared = key.spec.material.hash.as_ref();
    let Some(id) = declared.and_then(|brought| brought.key_id.as_deref()) else {
        return false;
    };
    let is_better = |other: &DeserializeGuard<ApiKey>| {
        other
            .0
            .as_ref()
            .is_ok_and(|other| precedes(other, key, id, place))
    };
    keys.find(is_better).is_some()
}

fn precedes(other: &ApiKey, key: &ApiKey, id: &str, place: &ApiName) -> bool {
    other.is_issued_at(place)
        && other.meta().uid != key.meta().uid
        && claim(other, id) != Claim::Declared
        && (claim(other, id), Age::read(other)) < (claim(key, id), Age::read(key))
}

fn claim(key: &ApiKey, id: &str) -> Claim {
    let is_id = |told: Option<&String>| told.is_some_and(|told| told == id);
    let is_announced = |status: &ApiKeyStatus| {
        let announced = status.current.iter().chain(&status.unrevealed);
        announced
            .map(|issued| &issued.key_id)
            .any(|told| is_id(Some(told)))
    };
    match &key.status {
        Some(status)
            if is_id(status.key_id.as_ref())
                || is_id(status.previous.as_ref().map(|before| &before.issued.key_id)) =>
        {
            Claim::InForce
        }
        Some(status) if is_announced(status) => Claim::Announced,
        _ => Claim::Declared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use water_resources::api_key::IssuedKey;

    const ID: &str = "AAAAbbbb0000";

    fn place() -> ApiName {
        ApiName {
            namespace: "team".into(),
            name: "water-data".into(),
        }
    }

    fn key(name: &str, change: impl FnOnce(&mut ApiKeyStatus)) -> ApiKey {
        let mut key = sample::key(name, "team");
        let mut status = ApiKeyStatus {
            api: Some(place()),
            ..ApiKeyStatus::default()
        };
        change(&mut status);
        key.status = Some(status);
        key
    }

    fn announced(status: &mut ApiKeyStatus) {
        status.current = Some(IssuedKey {
            revision: 0,
            hash: "ab".repeat(32),
            key_id: ID.into(),
            issued_time: water_domain::Timestamp::from_millis(0).unwrap(),
        });
    }

    fn in_force(status: &mut ApiKeyStatus) {
        announced(status);
        status.key_id = Some(ID.into());
    }

    #[test]
    fn whoever_has_it_in_force_keeps_it_then_whoever_announced_it_then_the_oldest() {
        let precedes = |one: &ApiKey, other: &ApiKey| precedes(one, other, ID, &place());
        let (new, first) = (key("a", |_| {}), key("b", announced));
        assert!(precedes(&first, &new) && !precedes(&new, &first));
        let second = key("c", announced);
        assert!(precedes(&first, &second) && !precedes(&second, &first));
        let told = key("d", in_force);
        assert!(precedes(&told, &first) && !precedes(&first, &told));
        assert!(!precedes(&told, &told));
    }

    #[test]
    fn another_water_data_api_has_key_ids_of_its_own() {
        let elsewhere = key("b", |status| {
            in_force(status);
            status.api = None;
        });
        assert!(!precedes(&elsewhere, &key("a", |_| {}), ID, &place()));
    }
}
