//! Record of one key in the directory: pure translations between status, spec and record.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use water_domain::{AccountId, CANDIDATES, KeyHash, KeyId, PlanName, Timestamp};
use water_keystore::{KeyState, Owner, Record};
use water_operator_core::key::facts::KeyRules;
use water_operator_core::key::ledger::Ledger;
use water_resources::api_key::{ApiKeySpec, ApiKeyStatus, IssuedKey, RetiringKey};

/// Facts about a key that never change after it was issued.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issuance {
    pub hash: KeyHash,
    /// Public name.
    pub key_id: KeyId,
    /// The revision that asked for it.
    pub revision: u32,
    pub time: Timestamp,
}

impl Issuance {
    /// Reads a status or a Secret; `None` if it was edited and cannot be parsed.
    pub fn read(issued: &IssuedKey) -> Option<Self> {
        Some(Self {
            hash: issued.hash.parse().ok()?,
            key_id: issued.key_id.parse().ok()?,
            revision: issued.revision.try_into().ok()?,
            time: issued.issued_time,
        })
    }

    /// Issue of the key as a status reports it.
    pub fn told(&self) -> IssuedKey {
        IssuedKey {
            revision: self.revision.into(),
            hash: self.hash.to_string(),
            key_id: self.key_id.to_string(),
            issued_time: self.time,
        }
    }

    /// Issue of a key that works until then, as a status reports it.
    pub fn retiring(&self, retire_time: Timestamp) -> RetiringKey {
        RetiringKey {
            issued: self.told(),
            retire_time,
        }
    }

    /// Record of the key for the gates.
    pub fn record(&self, account: &AccountId, rules: &KeyRules<PlanName>) -> Record {
        record(&self.key_id, account, self.revision, rules)
    }
}

/// Keys that a status names, but for entries that were edited and cannot be read.
pub fn ledger(status: &ApiKeyStatus) -> Ledger<KeyHash> {
    let read = |issued: &IssuedKey| Issuance::read(issued).map(|issued| issued.hash);
    let named = status.current.as_ref();
    let current = named.and_then(read);
    let before = status.previous.as_ref();
    let retiring = before.and_then(|before| Some((read(&before.issued)?, before.retire_time)));
    let is_reported = named.is_some_and(|named| status.key_id.as_ref() == Some(&named.key_id));
    // One that retires was in force, too.
    let is_retiring = retiring.is_some_and(|(before, _)| current == Some(before));
    Ledger {
        current,
        is_shown: current.is_some() && (is_reported || is_retiring),
        retiring,
        candidates: status.unrevealed.iter().filter_map(read).collect(),
    }
}

/// The status that names the keys of a ledger, of which `issued` says how each was issued. Entries of the status before
/// that cannot be read stay, as far as there is room: a newer version may have written them.
pub fn named(
    before: ApiKeyStatus,
    ledger: &Ledger<KeyHash>,
    issued: &BTreeMap<KeyHash, Issuance>,
) -> ApiKeyStatus {
    let told = |hash: &KeyHash| issued.get(hash).map(Issuance::told);
    let retiring = |(hash, at): &(KeyHash, Timestamp)| Some(issued.get(hash)?.retiring(*at));
    let others = before.current.into_iter().chain(before.unrevealed);
    let unreadable = others.filter(|other| Issuance::read(other).is_none());
    let candidates = ledger.candidates.iter().filter_map(told);
    let previous = ledger.retiring.as_ref().and_then(retiring);
    ApiKeyStatus {
        current: ledger.current.as_ref().and_then(told),
        unrevealed: candidates.chain(unreadable).take(CANDIDATES).collect(),
        previous: previous.or(before.previous),
        ..before
    }
}

/// Record of a key for the gates.
pub fn record(
    key_id: &KeyId,
    account: &AccountId,
    revision: u32,
    rules: &KeyRules<PlanName>,
) -> Record {
    Record {
        key_id: key_id.clone(),
        account: account.clone(),
        plan: rules.plan.clone(),
        state: if rules.suspended {
            KeyState::Suspended
        } else {
            KeyState::Active
        },
        not_before: rules.not_before,
        expires: rules.expires,
        retires: rules.retires,
        revision,
    }
}

/// Owner of an ApiKey's records.
pub fn owner(meta: &ObjectMeta) -> Owner {
    let text = |field: &Option<String>| field.as_deref().unwrap_or_default().into();
    Owner {
        uid: text(&meta.uid),
        namespace: text(&meta.namespace),
        name: text(&meta.name),
    }
}

/// Terms that a spec declares for its keys.
pub fn declared(spec: &ApiKeySpec) -> KeyRules<PlanName> {
    KeyRules {
        plan: spec.plan.clone(),
        suspended: spec.suspend,
        not_before: spec.not_before,
        expires: spec.expiration_time,
        retires: None,
    }
}

/// Terms of a record's key.
pub fn rules(record: &Record) -> KeyRules<PlanName> {
    KeyRules {
        plan: record.plan.clone(),
        suspended: record.state == KeyState::Suspended,
        not_before: record.not_before,
        expires: record.expires,
        retires: record.retires,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued(digit: char) -> Issuance {
        Issuance {
            hash: digit.to_string().repeat(64).parse().unwrap(),
            key_id: digit.to_string().repeat(12).parse().unwrap(),
            revision: 0,
            time: at(0),
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    fn all() -> BTreeMap<KeyHash, Issuance> {
        let all = ['a', 'b', 'c'].map(issued);
        all.map(|issued| (issued.hash, issued)).into()
    }

    /// An entry that somebody edited.
    fn edited() -> IssuedKey {
        IssuedKey {
            hash: "edited".into(),
            ..issued('d').told()
        }
    }

    /// Key b is in force, and a works until it retires.
    fn status() -> ApiKeyStatus {
        ApiKeyStatus {
            key_id: Some(issued('b').key_id.to_string()),
            current: Some(issued('b').told()),
            previous: Some(issued('a').retiring(at(7))),
            ..ApiKeyStatus::default()
        }
    }

    #[test]
    fn a_status_and_its_ledger_name_the_same_keys() {
        let unrevealed = vec![issued('c').told()];
        for status in [
            ApiKeyStatus::default(),
            status(),
            ApiKeyStatus {
                unrevealed,
                ..status()
            },
            ApiKeyStatus {
                key_id: None,
                previous: None,
                ..status()
            },
        ] {
            assert_eq!(named(status.clone(), &ledger(&status), &all()), status);
        }
    }

    #[test]
    fn a_key_was_in_force_that_the_status_reports_or_retires() {
        assert!(ledger(&status()).is_shown);
        let key_id = None;
        let unreported = ApiKeyStatus { key_id, ..status() };
        assert!(!ledger(&unreported).is_shown);
        let previous = Some(issued('b').retiring(at(7)));
        let retiring = ApiKeyStatus {
            previous,
            ..unreported
        };
        assert!(ledger(&retiring).is_shown);
    }

    #[test]
    fn an_announcement_keeps_the_key_id_and_what_cannot_be_read() {
        let status = ApiKeyStatus {
            current: Some(edited()),
            unrevealed: vec![edited()],
            ..status()
        };
        let ledger = ledger(&status).announce(issued('c').hash);
        let announced = named(status.clone(), &ledger, &all());
        assert_eq!(announced.key_id, status.key_id);
        assert_eq!(announced.current, Some(issued('c').told()));
        assert_eq!(announced.unrevealed, [edited(), edited()]);
        assert_eq!(announced.previous, status.previous);
    }
}
