//! What the directory holds of an ApiKey, and how the key stands: pure translations of the spec.

use std::collections::HashSet;

use kube::ResourceExt;
use water_domain::{KeyHash, Limits, Plan, PlanName, Timestamp};
use water_keystore::{Entry, KeyState, Owner, Record, Standing};

use crate::conditions::{Aspect, Outcome, Reason, find};
use crate::crd::api_key::{IssuedAt, IssuedKey};
use crate::crd::condition::ConditionStatus;
use crate::crd::water_data_api::{Access, PlanSpec};
use crate::crd::{ApiKey, ApiKeyStatus, WaterDataApi};

/// An ApiKey's status names a hash that is none; only a hand-edited status does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the status of the ApiKey names a hash or key id that is none")]
pub struct InvalidStatus;

/// Whose the records of an ApiKey are.
pub fn owner(key: &ApiKey) -> Owner {
    Owner {
        uid: key.uid().unwrap_or_default().into(),
        namespace: key.namespace().unwrap_or_default().into(),
        name: key.name_any().into(),
    }
}

/// The hash of an issued key.
pub fn hash(issued: &IssuedKey) -> Result<KeyHash, InvalidStatus> {
    issued.hash.parse().map_err(|_| InvalidStatus)
}

/// What the gates shall know of an issued key of this ApiKey.
pub fn record(key: &ApiKey, issued: &IssuedKey) -> Result<Record, InvalidStatus> {
    Ok(Record {
        key_id: issued.key_id.parse().map_err(|_| InvalidStatus)?,
        account: key.spec.account_id.clone(),
        plan: key.spec.plan.clone(),
        state: if key.spec.suspend {
            KeyState::Suspended
        } else {
            KeyState::Active
        },
        not_before: key.spec.not_before,
        expires: key.spec.expiration_time,
        retires: None,
        revision: u32::try_from(issued.revision).map_err(|_| InvalidStatus)?,
    })
}

/// How a published key stands, in words.
pub fn standing(record: &Record, plan: &PlanSpec, now: Timestamp) -> Outcome {
    match record.standing(now) {
        Standing::Expired | Standing::Retired => Outcome::Stuck(
            Reason::Expired,
            "spec.expirationTime has passed and the key is refused: set a later one, or delete the ApiKey".into(),
        ),
        Standing::Suspended => {
            Outcome::InForce(Reason::Suspended, "the key is refused while spec.suspend is set".into())
        }
        Standing::NotYetValid => {
            Outcome::InForce(Reason::NotYetValid, "the key is refused until spec.notBefore".into())
        }
        Standing::Active if plan.access == Access::Denied => Outcome::InForce(
            Reason::PlanWithoutAccess,
            format!("plan {} does not open the API: requests are answered 403", plan.name),
        ),
        Standing::Active => Outcome::InForce(Reason::Active, "the key is accepted".into()),
    }
}

/// The plans of a WaterDataApi as the directory holds them.
pub fn plans(api: &WaterDataApi) -> Vec<Plan> {
    api.spec.plans.iter().map(plan).collect()
}

/// The plans that the directory shall have: those declared, and those that a published key still
/// names, with the limits that they last had.
pub fn with_retained<'a>(
    mut declared: Vec<Plan>,
    stored: Vec<Plan>,
    place: &IssuedAt,
    keys: impl IntoIterator<Item = &'a ApiKey>,
) -> Vec<Plan> {
    let published = |key: &&ApiKey| {
        let status = key.status.as_ref();
        status.is_some_and(|status| status.api.as_ref() == Some(place) && status.current.is_some())
    };
    let named: HashSet<PlanName> = keys
        .into_iter()
        .filter(published)
        .map(|key| key.spec.plan.clone())
        .collect();
    let is_declared = |plan: &Plan| declared.iter().any(|declared| declared.name == plan.name);
    let retained: Vec<Plan> = stored
        .into_iter()
        .filter(|plan| !is_declared(plan) && named.contains(&plan.name))
        .collect();
    declared.extend(retained);
    declared
}

fn plan(spec: &PlanSpec) -> Plan {
    let limit = |limit: Option<u32>| limit.and_then(|limit| limit.try_into().ok());
    let limits = match (
        spec.access,
        limit(spec.requests_per_minute),
        limit(spec.requests_per_day),
    ) {
        (Access::Allowed, Some(requests_per_minute), Some(requests_per_day)) => Some(Limits {
            requests_per_minute,
            requests_per_day,
        }),
        // The schema refuses an open plan without limits; without a schema it opens nothing.
        _ => None,
    };
    Plan {
        name: spec.name.clone(),
        limits,
    }
}

/// Whether a key that is not admitted keeps its record nevertheless: one whose plan is gone does,
/// with the plan's last limits, and one whose WaterDataApi is away for a while.
pub fn keeps(reason: &str) -> bool {
    [Reason::PlanUnknown, Reason::ApiNotFound]
        .map(Reason::as_str)
        .contains(&reason)
}

/// Every hash that a status names. One edited by hand names none.
pub fn hashes(status: &ApiKeyStatus) -> Vec<KeyHash> {
    let issued = status.current.iter().chain(&status.unrevealed);
    let issued = issued.map(|issued| &issued.hash);
    let retiring = status.previous.iter().map(|previous| &previous.hash);
    let named = issued.chain(retiring);
    named.filter_map(|hash| hash.parse().ok()).collect()
}

/// What a rebuild publishes of an ApiKey: the key that its Secret holds or, where none is known, all
/// that may be revealed.
pub fn entries(key: &ApiKey, place: &IssuedAt, in_secret: Option<IssuedKey>) -> Vec<Entry> {
    let Some(status) = &key.status else {
        return Vec::new();
    };
    let is_kept = find(&status.conditions, Aspect::Accepted)
        .is_none_or(|accepted| accepted.status == ConditionStatus::True || keeps(&accepted.reason));
    if status.api.as_ref() != Some(place) || key.metadata.deletion_timestamp.is_some() || !is_kept {
        return Vec::new();
    }
    let issued = match &in_secret {
        Some(issued) => vec![issued],
        None => status.current.iter().chain(&status.unrevealed).collect(),
    };
    let entry = |issued: &IssuedKey| {
        Some(Entry {
            hash: hash(issued).ok()?,
            record: record(key, issued).ok()?,
            owner: owner(key),
        })
    };
    issued.into_iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn issued() -> IssuedKey {
        let hash = "ab".repeat(32);
        IssuedKey {
            revision: 0,
            hash,
            key_id: "abababababab".into(),
            issued_time: at("2026-01-01T00:00:00Z"),
        }
    }

    fn reason(key: &ApiKey, plan: &str) -> Reason {
        let api = sample::api("water-data", "team");
        let plan = api
            .spec
            .plans
            .iter()
            .find(|known| known.name.as_str() == plan)
            .unwrap();
        let record = record(key, &issued()).unwrap();
        match standing(&record, plan, at("2026-06-01T00:00:00Z")) {
            Outcome::InForce(reason, _)
            | Outcome::Underway(reason, _)
            | Outcome::Stuck(reason, _) => reason,
        }
    }

    #[test]
    fn a_key_stands_as_its_spec_and_plan_say() {
        let key = sample::key("acme", "team");
        assert_eq!(reason(&key, "Enterprise"), Reason::Active);
        assert_eq!(reason(&key, "Free"), Reason::PlanWithoutAccess);
        let mut early = key.clone();
        early.spec.not_before = Some(at("2026-06-01T00:00:00.001Z"));
        assert_eq!(reason(&early, "Enterprise"), Reason::NotYetValid);
        early.spec.suspend = true;
        assert_eq!(reason(&early, "Enterprise"), Reason::Suspended);
        early.spec.expiration_time = Some(at("2026-06-01T00:00:00Z"));
        assert_eq!(reason(&early, "Enterprise"), Reason::Expired);
    }

    #[test]
    fn plans_without_access_have_no_limits() {
        let plans = plans(&sample::api("water-data", "team"));
        assert_eq!(plans[0].limits.unwrap().requests_per_minute.get(), 120);
        assert_eq!(plans[1].limits, None);
    }

    #[test]
    fn a_plan_that_is_gone_keeps_its_limits_for_the_keys_that_name_it() {
        let place = IssuedAt {
            namespace: "team".into(),
            name: "water-data".into(),
        };
        let mut gone = plans(&sample::api("water-data", "team"));
        gone[0].name = "Gold".parse().unwrap();
        let mut key = sample::key("acme", "team");
        key.spec.plan = "Gold".parse().unwrap();
        let names = |key: &ApiKey| -> Vec<String> {
            let declared = plans(&sample::api("water-data", "team"));
            let kept = with_retained(declared, gone.clone(), &place, [key]);
            kept.iter().map(|plan| plan.name.to_string()).collect()
        };
        assert_eq!(names(&key), ["Enterprise", "Free"]);
        let (api, current) = (Some(place.clone()), Some(issued()));
        key.status = Some(crate::crd::ApiKeyStatus {
            api,
            current,
            ..Default::default()
        });
        assert_eq!(names(&key), ["Enterprise", "Free", "Gold"]);
    }

    /// A key that a pass has left like this.
    fn told(change: impl FnOnce(&mut crate::crd::ApiKeyStatus)) -> ApiKey {
        let mut key = sample::key("acme", "team");
        let mut status = crate::crd::ApiKeyStatus {
            api: Some(place()),
            current: Some(issued()),
            key_id: Some(issued().key_id),
            ..Default::default()
        };
        change(&mut status);
        key.status = Some(status);
        key
    }

    fn place() -> IssuedAt {
        IssuedAt {
            namespace: "team".into(),
            name: "water-data".into(),
        }
    }

    fn refused(reason: Reason) -> ApiKey {
        let finding = crate::conditions::Finding::lacks(Aspect::Accepted, reason, "");
        let conditions =
            crate::conditions::stated(&[], vec![finding], 1, at("2026-01-01T00:00:00Z"));
        told(|status| status.conditions = conditions)
    }

    /// An issued key of another hash.
    fn other(digits: &str) -> IssuedKey {
        IssuedKey {
            hash: digits.repeat(32),
            ..issued()
        }
    }

    /// The first two digits of each hash that a rebuild publishes.
    fn published(key: &ApiKey, in_secret: Option<IssuedKey>) -> Vec<String> {
        let entries = entries(key, &place(), in_secret);
        let digits = entries
            .iter()
            .map(|entry| entry.hash.to_string()[..2].to_owned());
        digits.collect()
    }

    #[test]
    fn a_rebuild_publishes_what_an_owner_can_have_or_may_get_whatever_redis_did_meanwhile() {
        assert_eq!(published(&told(|_| {}), None), ["ab"]);
        let unseen = told(|status| {
            status.key_id = None;
            status.unrevealed = vec![other("ef")];
        });
        assert_eq!(published(&unseen, None), ["ab", "ef"]);
        assert_eq!(published(&unseen, Some(other("cd"))), ["cd"]);
        assert!(published(&refused(Reason::NamespaceNotAdmitted), None).is_empty());
        assert_eq!(published(&refused(Reason::PlanUnknown), None), ["ab"]);
        assert!(published(&told(|status| status.api = None), None).is_empty());
    }

    #[test]
    fn a_status_that_was_edited_by_hand_publishes_nothing() {
        let mut broken = issued();
        broken.hash = "no hash".into();
        assert_eq!(hash(&broken), Err(InvalidStatus));
    }
}
