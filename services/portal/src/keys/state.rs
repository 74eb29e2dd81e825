//! How a key stands, from what its ApiKey says: a pure function.

use serde::Serialize;
use utoipa::ToSchema;
use water_resources::condition::ConditionStatus;
use water_resources::{ApiKey, ApiKeyStatus, Condition};

/// How a key stands at every gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A change is on its way to the gates.
    Publishing,
    /// Requests with it are accepted.
    Active,
    /// It is refused until it is resumed.
    Suspended,
    /// Its time has not come.
    NotYetValid,
    /// Its time is over.
    Expired,
    /// Its plan does not open the API.
    PlanWithoutAccess,
    /// It is being revoked; afterwards it is gone.
    Revoking,
    /// Somebody's help is needed.
    Stalled,
}

/// How a key stands, and why in one word, as far as its conditions tell.
pub fn state(key: &ApiKey) -> (State, Option<String>) {
    let status = key.status.clone().unwrap_or_default();
    let said = said(&status);
    let reason = said.map(|condition| word(&condition.reason));
    let is_observed = status.observed_generation >= key.metadata.generation;
    if key.metadata.deletion_timestamp.is_some() {
        return (State::Revoking, reason.filter(|_| is_observed));
    }
    if !is_observed {
        // What the conditions say is about the declaration before.
        return (State::Publishing, None);
    }
    let state = match said.map(|said| (said.kind.as_str(), said.reason.as_str())) {
        Some(("Stalled", "Expired")) => State::Expired,
        Some(("Stalled", _)) => State::Stalled,
        _ if !is_current(key, &status) => State::Publishing,
        Some(("Ready", "Active")) => State::Active,
        Some(("Ready", "Suspended")) => State::Suspended,
        Some(("Ready", "NotYetValid")) => State::NotYetValid,
        Some(("Ready", "PlanWithoutAccess")) => State::PlanWithoutAccess,
        Some(("Reconciling", "Deleting")) => State::Revoking,
        _ => State::Publishing,
    };
    (state, reason)
}

/// The one condition of kstatus that holds.
fn said(status: &ApiKeyStatus) -> Option<&Condition> {
    ["Stalled", "Ready", "Reconciling"].iter().find_map(|kind| {
        let mut conditions = status.conditions.iter();
        conditions
            .find(|condition| condition.kind == *kind && condition.status == ConditionStatus::True)
    })
}

/// Whether the key that is in force is the declared one; of a generated key none is declared.
fn is_current(key: &ApiKey, status: &ApiKeyStatus) -> bool {
    let declared = key.spec.material.hash.as_ref();
    declared.is_none_or(|declared| {
        let current = status.current.as_ref();
        current.is_some_and(|current| current.hash == declared.sha256)
    })
}

/// `AwaitingGates` as `awaiting_gates`, as all our codes are spelt.
fn word(reason: &str) -> String {
    let mut word = String::with_capacity(reason.len() + 4);
    for (index, letter) in reason.char_indices() {
        if letter.is_ascii_uppercase() && index > 0 {
            word.push('_');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HASH: &str = "aa";

    /// A key of generation 2 whose operator has looked at it.
    fn key(conditions: &[(&str, &str)]) -> Value {
        let conditions = conditions.iter().map(|(kind, reason)| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2,
            })
        });
        let conditions: Vec<Value> = conditions.collect();
        json!({
            "apiVersion": "waterdata.dev/v1", "kind": "ApiKey",
            "metadata": { "name": "acme", "generation": 2 },
            "spec": {
                "accountId": "acme", "plan": "Enterprise",
                "material": { "hash": { "sha256": HASH } },
            },
            "status": {
                "observedGeneration": 2,
                "current": {
                    "revision": 0, "hash": HASH, "keyId": "aaaaaaaaaaaa",
                    "issuedTime": "2026-01-01T00:00:00Z",
                },
                "conditions": conditions,
            },
        })
    }

    fn of(key: Value) -> (State, Option<String>) {
        state(&serde_json::from_value(key).unwrap())
    }

    fn shown(conditions: &[(&str, &str)]) -> State {
        of(key(conditions)).0
    }

    #[test]
    fn a_key_that_every_gate_knows_stands_as_its_conditions_say() {
        for (condition, state) in [
            (("Ready", "Active"), State::Active),
            (("Ready", "Suspended"), State::Suspended),
            (("Ready", "NotYetValid"), State::NotYetValid),
            (("Ready", "PlanWithoutAccess"), State::PlanWithoutAccess),
            (("Stalled", "Expired"), State::Expired),
            (("Stalled", "KeyConflict"), State::Stalled),
            (("Reconciling", "AwaitingGates"), State::Publishing),
            (("Reconciling", "StoreUnavailable"), State::Publishing),
        ] {
            assert_eq!(shown(&[condition]), state, "{condition:?}");
        }
        assert_eq!(shown(&[]), State::Publishing);
    }

    #[test]
    fn the_reason_is_one_word_of_ours() {
        let (_, reason) = of(key(&[("Reconciling", "AwaitingGates")]));
        assert_eq!(reason.as_deref(), Some("awaiting_gates"));
    }

    #[test]
    fn a_change_that_the_operator_has_not_seen_is_being_published_whatever_stood_before() {
        for before in [("Ready", "Active"), ("Stalled", "Expired")] {
            let mut key = key(&[before]);
            key["metadata"]["generation"] = json!(3);
            assert_eq!(of(key), (State::Publishing, None));
        }
    }

    #[test]
    fn a_hash_that_is_not_in_force_is_being_published_unless_it_is_refused() {
        let mut key = key(&[("Ready", "Active")]);
        key["spec"]["material"]["hash"]["sha256"] = json!("bb");
        assert_eq!(of(key.clone()).0, State::Publishing);
        key["status"]["conditions"][0]["type"] = json!("Stalled");
        key["status"]["conditions"][0]["reason"] = json!("KeyConflict");
        assert_eq!(of(key).0, State::Stalled);
    }

    #[test]
    fn a_key_without_a_status_is_being_published() {
        let mut key = key(&[]);
        key["status"] = Value::Null;
        assert_eq!(of(key), (State::Publishing, None));
    }

    #[test]
    fn a_generated_key_is_current_as_it_is() {
        let mut key = key(&[("Ready", "Active")]);
        key["spec"]["material"] = json!({ "generated": {} });
        assert_eq!(of(key).0, State::Active);
    }

    #[test]
    fn a_deleted_key_is_being_revoked_from_the_first_moment() {
        for conditions in [
            &[("Ready", "Active")][..],
            &[("Reconciling", "Deleting")],
            &[],
        ] {
            let mut key = key(conditions);
            key["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            key["metadata"]["generation"] = json!(3);
            assert_eq!(of(key), (State::Revoking, None));
        }
    }
}
