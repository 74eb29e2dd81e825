//! Required answers to clients with each key that an ApiKey names, by its spec and its status.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use water_domain::{KeyHash, Timestamp};
use water_kit::operator::clients::{Expectation, Expected};
use water_kit::operator::objects::shown;
use water_resources::ApiKey;

use super::change::LONG_OVERLAP;

/// A gate asks Redis for the time again and again, and may be ahead in between.
const CLOCK_ERROR: Duration = Duration::from_secs(1);

/// Whether its keys have to be refused at that time of the gate's, whatever blocks it.
pub fn is_restricted(key: &ApiKey, now: Timestamp) -> bool {
    let spec = &key.spec;
    let has_ended = spec.expiration_time.is_some_and(|end| has_come(end, now));
    let begins = spec
        .not_before
        .is_some_and(|begin| begin > now.plus(CLOCK_ERROR));
    let is_deleting = key.metadata.deletion_timestamp.is_some();
    !is_deleting && (spec.suspend || has_ended || begins)
}

fn has_come(time: Timestamp, now: Timestamp) -> bool {
    time.plus(CLOCK_ERROR) <= now
}

/// Time before that one by as much as the clocks may differ.
fn before(time: Timestamp) -> Option<Timestamp> {
    let error = i64::try_from(CLOCK_ERROR.as_millis()).ok()?;
    Timestamp::from_millis(time.as_millis() - error)
}

/// Every key that spec and status name.
pub fn named(key: &ApiKey) -> BTreeSet<KeyHash> {
    let brought = key.spec.material.hash.iter().map(|brought| &brought.sha256);
    let status = key.status.iter();
    let told = status.flat_map(|status| {
        let issued = status.current.iter().chain(&status.unrevealed);
        let issued = issued.map(|issued| &issued.hash);
        issued.chain(status.previous.iter().map(|previous| &previous.issued.hash))
    });
    let all = brought.chain(told);
    all.filter_map(|hash| hash.parse().ok()).collect()
}

/// Expectations for every key that spec and status name, at that time of the gate's, which was before the ApiKey was
/// read. Every gate has acknowledged the report of the status about the present spec.
pub fn expectations(
    key: &ApiKey,
    in_secrets: &BTreeSet<KeyHash>,
    ends: &HashMap<KeyHash, Timestamp>,
    now: Option<Timestamp>,
) -> BTreeMap<KeyHash, Expectation> {
    let all = named(key).into_iter();
    let (Some(status), Some(now)) = (&key.status, now) else {
        return all.map(|hash| (hash, Expected::Either.into())).collect();
    };
    let end = key.spec.expiration_time;
    let every = match shown(key, "Ready").as_str() {
        "True/Suspended" => Expected::Refused.into(),
        "True/NotYetValid" => {
            let begin = key.spec.not_before.and_then(before);
            let refused: Expectation = Expected::Refused.into();
            refused.until(begin.or(Some(now)))
        }
        "True/Active" | "False/Expired" if end.is_some_and(|end| has_come(end, now)) => {
            let refused: Expectation = Expected::Refused.into();
            refused.after(end)
        }
        "True/Active" => {
            let mut expected: BTreeMap<_, _> =
                all.map(|hash| (hash, Expected::Either.into())).collect();
            let current = status.current.iter();
            let current = current.filter_map(|issued| issued.hash.parse().ok());
            for hash in current {
                expected.insert(hash, of_current(key, &hash, in_secrets, now));
                expected.extend(of_previous(key, &hash, in_secrets, ends, now));
            }
            return expected;
        }
        _ => Expected::Either.into(),
    };
    all.map(|hash| (hash, every)).collect()
}

/// Expectation for the current key of an ApiKey that is in force.
fn of_current(
    key: &ApiKey,
    hash: &KeyHash,
    in_secrets: &BTreeSet<KeyHash>,
    now: Timestamp,
) -> Expectation {
    let (rotation, status) = (&key.spec.rotation, key.status.as_ref());
    let accepted: Expectation = Expected::Accepted.into();
    // The operator may know before the gate that it begins.
    let accepted = accepted.after(key.spec.not_before);
    let accepted = accepted.until(key.spec.expiration_time.and_then(before));
    let is_brought = key.spec.material.hash.is_some();
    let is_long = rotation.overlap_seconds >= LONG_OVERLAP.into();
    // Only an edit replaces it, or it works for long after its successor begins.
    if is_brought || rotation.period_seconds.is_none() && is_long {
        return accepted;
    }
    // Its successor may have been written before the status names it.
    if !in_secrets.contains(hash) || status.is_none_or(|status| !status.unrevealed.is_empty()) {
        return Expected::Either.into();
    }
    let seconds = |seconds: i64| Duration::from_secs(seconds.try_into().unwrap_or(0));
    let overlap = seconds(rotation.overlap_seconds);
    let issued = status.and_then(|status| Some(status.current.as_ref()?.issued_time));
    let rotates = issued.zip(rotation.period_seconds);
    let rotates = rotates.map(|(issued, period)| issued.plus(seconds(period)));
    // From now on it may be replaced, and works for the overlap then.
    let replaced = [Some(now), rotates].into_iter().flatten();
    accepted.until(replaced.filter_map(|at| before(at.plus(overlap))))
}

/// Expectation for the key before the current one of an ApiKey that is in force.
fn of_previous(
    key: &ApiKey,
    current: &KeyHash,
    in_secrets: &BTreeSet<KeyHash>,
    ends: &HashMap<KeyHash, Timestamp>,
    now: Timestamp,
) -> Option<(KeyHash, Expectation)> {
    let status = key.status.as_ref()?;
    let previous = status.previous.as_ref()?;
    let hash: KeyHash = previous.issued.hash.parse().ok()?;
    if has_come(previous.retire_time, now) {
        let refused: Expectation = Expected::Refused.into();
        return Some((hash, refused.after(Some(previous.retire_time))));
    }
    let rotation = &key.spec.rotation;
    let is_brought = key.spec.material.hash.is_some();
    // The next successor ends it as soon as it is announced. The operator may know before the gate that
    // the period is over, so that nothing is sure of a key with a period.
    let may_be_replaced = rotation.period_seconds.is_some()
        || !status.unrevealed.is_empty()
        || !is_brought && !in_secrets.contains(current);
    if may_be_replaced || rotation.overlap_seconds == 0 {
        return Some((hash, Expected::Either.into()));
    }
    let own = ends.get(&hash).copied();
    let end = [Some(previous.retire_time), key.spec.expiration_time, own];
    let accepted: Expectation = Expected::Accepted.into();
    let accepted = accepted.after(key.spec.not_before);
    Some((
        hash,
        accepted.until(end.into_iter().flatten().filter_map(before)),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::faults::change::{declared, hash};

    const NOW: i64 = 1_000_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(NOW + seconds * 1000).unwrap()
    }

    /// The second hash of a place with brought keys, which took the place of the first.
    fn rotated(ready: &str, retires: i64) -> ApiKey {
        let issued = |number| {
            json!({ "revision": 0, "hash": hash(3, number), "keyId": format!("{number:012x}"),
                "issuedTime": at(0).to_string() })
        };
        let mut key = declared(3, 2);
        key["metadata"]["generation"] = 1.into();
        let (status, reason) = ready.split_once('/').unwrap();
        let condition = json!({ "type": "Ready", "status": status, "reason": reason, "message": "",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let mut previous = issued(1);
        previous["retireTime"] = at(retires).to_string().into();
        key["status"] =
            json!({ "current": issued(2), "previous": previous, "conditions": [condition] });
        serde_json::from_value(key).unwrap()
    }

    /// Expectations for the first and the second hash, so many seconds from now.
    fn expected(key: &ApiKey, ends: &HashMap<KeyHash, Timestamp>, later: i64) -> [Expected; 2] {
        let found = expectations(key, &BTreeSet::new(), ends, Some(at(0)));
        [1, 2].map(|number| {
            let hash = hash(3, number).unwrap().parse().unwrap();
            let expectation: Expectation = found[&hash];
            expectation.at(Some(at(later)), Some(at(later)))
        })
    }

    #[test]
    fn a_replaced_key_is_accepted_until_it_retires_or_ends() {
        use Expected::{Accepted, Either, Refused};
        let none = HashMap::new();
        let key = rotated("True/Active", 10);
        assert_eq!(expected(&key, &none, 8), [Accepted, Accepted]);
        assert_eq!(expected(&key, &none, 9), [Either, Accepted]);
        assert_eq!(
            expected(&rotated("True/Active", -1), &none, 0),
            [Refused, Accepted]
        );
        let own = HashMap::from([(hash(3, 1).unwrap().parse().unwrap(), at(5))]);
        assert_eq!(expected(&key, &own, 4), [Either, Accepted]);
        let mut cut = key.clone();
        cut.spec.rotation.overlap_seconds = 0;
        assert_eq!(expected(&cut, &none, 0), [Either, Accepted]);
        let mut ends = key;
        ends.spec.expiration_time = Some(at(5));
        assert_eq!(expected(&ends, &none, 3), [Accepted, Accepted]);
        assert_eq!(expected(&ends, &none, 4), [Either, Either]);
    }

    #[test]
    fn no_key_is_accepted_while_all_are_restricted() {
        use Expected::{Either, Refused};
        let none = HashMap::new();
        let suspended = rotated("True/Suspended", 10);
        assert_eq!(expected(&suspended, &none, 0), [Refused, Refused]);
        let mut early = rotated("True/NotYetValid", 10);
        early.spec.not_before = Some(at(5));
        assert_eq!(expected(&early, &none, 3), [Refused, Refused]);
        assert_eq!(expected(&early, &none, 4), [Either, Either]);
    }

    #[test]
    fn a_hindered_key_is_restricted_as_its_spec_says() {
        let mut key = rotated("False/PlanUnknown", 10);
        assert!(!is_restricted(&key, at(0)));
        key.spec.not_before = Some(at(2));
        assert!(is_restricted(&key, at(0)) && !is_restricted(&key, at(1)));
        key.spec.expiration_time = Some(at(3));
        assert!(is_restricted(&key, at(4)) && !is_restricted(&key, at(3)));
        key.spec.suspend = true;
        assert!(is_restricted(&key, at(3)));
    }
}
