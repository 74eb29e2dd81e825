//! State of a key, from its ApiKey: a pure function.

use serde::Serialize;
use water_resources::condition::{ConditionStatus, ConditionType, Reason};
use water_resources::{ApiKey, ApiKeyStatus, Condition};

/// State of a key at every gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A change is on its way to the gates.
    Publishing,
    /// Requests with it are accepted.
    Active,
    /// Suspension; it is refused until it is resumed.
    Suspended,
    /// Start in the future.
    NotYetValid,
    /// End in the past.
    Expired,
    /// Plan that does not open the API.
    PlanWithoutAccess,
    /// Revocation under way; afterwards it is gone.
    Revoking,
    /// Failure that needs somebody's help.
    Stalled,
}

/// Returns the state of a key and the reason in one word, if its conditions report them.
pub fn state(key: &ApiKey) -> (State, Option<String>) {
    let status = key.status.clone().unwrap_or_default();
    let said = said(&status);
    let reason = said.map(|condition| word(&condition.reason));
    let is_observed = status.observed_generation >= key.metadata.generation;
    if key.metadata.deletion_timestamp.is_some() {
        return (State::Revoking, reason.filter(|_| is_observed));
    }
    if !is_observed {
        // The conditions are about the declaration before.
        return (State::Publishing, None);
    }
    let kind = said.and_then(|said| ConditionType::parse(&said.kind));
    let why = said.and_then(|said| Reason::parse(&said.reason));
    let state = match (kind, why) {
        (Some(ConditionType::Stalled), Some(Reason::Expired)) => State::Expired,
        (Some(ConditionType::Stalled), _) => State::Stalled,
        _ if !is_current(key, &status) => State::Publishing,
        (Some(ConditionType::Ready), Some(Reason::Active)) => State::Active,
        (Some(ConditionType::Ready), Some(Reason::Suspended)) => State::Suspended,
        (Some(ConditionType::Ready), Some(Reason::NotYetValid)) => State::NotYetValid,
        (Some(ConditionType::Ready), Some(Reason::PlanWithoutAccess)) => State::PlanWithoutAccess,
        (Some(ConditionType::Reconciling), Some(Reason::Deleting)) => State::Revoking,
        _ => State::Publishing,
    };
    (state, reason)
}

/// Returns the condition of kstatus that holds.
fn said(status: &ApiKeyStatus) -> Option<&Condition> {
    use ConditionType::{Ready, Reconciling, Stalled};
    [Stalled, Ready, Reconciling].iter().find_map(|kind| {
        let mut conditions = status.conditions.iter();
        conditions.find(|condition| {
            condition.kind == kind.as_str() && condition.status == ConditionStatus::True
        })
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

/// Spells `AwaitingGates` as `awaiting_gates`, as all our codes are spelt.
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

    /// Returns a key of generation 2 whose status has been written for it.
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

    fn state_from(key: Value) -> (State, Option<String>) {
        state(&serde_json::from_value(key).unwrap())
    }

    fn shown(conditions: &[(&str, &str)]) -> State {
        state_from(key(conditions)).0
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
        let (_, reason) = state_from(key(&[("Reconciling", "AwaitingGates")]));
        assert_eq!(reason.as_deref(), Some("awaiting_gates"));
    }

    #[test]
    fn a_change_that_the_operator_has_not_seen_is_being_published_whatever_stood_before() {
        for before in [("Ready", "Active"), ("Stalled", "Expired")] {
            let mut key = key(&[before]);
            key["metadata"]["generation"] = json!(3);
            assert_eq!(state_from(key), (State::Publishing, None));
        }
    }

    #[test]
    fn a_hash_that_is_not_in_force_is_being_published_unless_it_is_refused() {
        let mut key = key(&[("Ready", "Active")]);
        key["spec"]["material"]["hash"]["sha256"] = json!("bb");
        assert_eq!(state_from(key.clone()).0, State::Publishing);
        key["status"]["conditions"][0]["type"] = json!("Stalled");
        key["status"]["conditions"][0]["reason"] = json!("KeyConflict");
        assert_eq!(state_from(key).0, State::Stalled);
    }

    #[test]
    fn a_key_without_a_status_is_being_published() {
        let mut key = key(&[]);
        key["status"] = Value::Null;
        assert_eq!(state_from(key), (State::Publishing, None));
    }

    #[test]
    fn a_generated_key_is_current_as_it_is() {
        let mut key = key(&[("Ready", "Active")]);
        key["spec"]["material"] = json!({ "generated": {} });
        assert_eq!(state_from(key).0, State::Active);
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
            assert_eq!(state_from(key), (State::Revoking, None));
        }
    }
}
