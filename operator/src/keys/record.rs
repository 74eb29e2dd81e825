//! What the directory holds of one key: pure translations between status, spec and record.

use kube::api::ObjectMeta;
use water_domain::{AccountId, KeyHash, KeyId, PlanName, Timestamp};
use water_keystore::{KeyState, Owner, Record};
use water_resources::api_key::{ApiKeySpec, IssuedKey, RetiringKey};

use super::seen::KeyRules;

/// What never changes of a key after it was issued.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issued {
    pub hash: KeyHash,
    /// Its public name.
    pub key_id: KeyId,
    /// The revision that asked for it.
    pub revision: u32,
    pub time: Timestamp,
}

impl Issued {
    /// Reads a status or a Secret; `None` if it was edited and cannot be parsed.
    pub fn read(issued: &IssuedKey) -> Option<Self> {
        Some(Self {
            hash: issued.hash.parse().ok()?,
            key_id: issued.key_id.parse().ok()?,
            revision: issued.revision.try_into().ok()?,
            time: issued.issued_time,
        })
    }

    /// As a status says it.
    pub fn told(&self) -> IssuedKey {
        IssuedKey {
            revision: self.revision.into(),
            hash: self.hash.to_string(),
            key_id: self.key_id.to_string(),
            issued_time: self.time,
        }
    }

    /// As a status says it of a key that works until then.
    pub fn retiring(&self, retire_time: Timestamp) -> RetiringKey {
        RetiringKey {
            issued: self.told(),
            retire_time,
        }
    }

    /// What the gates shall know of the key.
    pub fn record(&self, account: &AccountId, rules: &KeyRules<PlanName>) -> Record {
        record(&self.key_id, account, self.revision, rules)
    }
}

/// What the gates shall know of a key.
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

/// Whose the records of an ApiKey are.
pub fn owner(meta: &ObjectMeta) -> Owner {
    let text = |field: &Option<String>| field.as_deref().unwrap_or_default().into();
    Owner {
        uid: text(&meta.uid),
        namespace: text(&meta.namespace),
        name: text(&meta.name),
    }
}

/// How a spec wants its keys to be judged.
pub fn declared(spec: &ApiKeySpec) -> KeyRules<PlanName> {
    KeyRules {
        plan: spec.plan.clone(),
        suspended: spec.suspend,
        not_before: spec.not_before,
        expires: spec.expiration_time,
        retires: None,
    }
}

/// How a record judges its key.
pub fn rules(record: &Record) -> KeyRules<PlanName> {
    KeyRules {
        plan: record.plan.clone(),
        suspended: record.state == KeyState::Suspended,
        not_before: record.not_before,
        expires: record.expires,
        retires: record.retires,
    }
}
