//! 4: the gates refuse a key before its finalizer goes. Reads the operator's requests: at the one
//! that releases an ApiKey, no gate may accept for its account any hash that its spec or a status has
//! named. Another account's ApiKey may have the hash that its spec names.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use water_domain::KeyHash;
use water_harness::Protocol;

use super::Violation;
use crate::operator::gate::Gate;

const FINALIZER: &str = "waterdata.dev/revoke";

/// Releases so far.
#[derive(Clone)]
pub struct Releases {
    gate: Arc<Gate>,
    facts: Arc<Mutex<Facts>>,
}

#[derive(Default)]
struct Facts {
    /// Hashes and accounts by the ApiKey's name.
    known: HashMap<String, Known>,
    /// Hashes of stripped ApiKeys, which the gates accept until a sweep.
    stripped: BTreeSet<KeyHash>,
    count: usize,
    violations: Vec<Violation>,
}

/// Hashes and accounts that requests about an ApiKey have named.
#[derive(Default)]
struct Known {
    hashes: BTreeSet<KeyHash>,
    accounts: BTreeSet<String>,
}

impl Releases {
    /// Watches the releases of keys that this gate knows.
    pub fn at(gate: &Arc<Gate>) -> Self {
        Self {
            gate: Arc::clone(gate),
            facts: Arc::default(),
        }
    }

    /// Reads a request that is about to be delivered.
    pub fn see(&self, protocol: Protocol, request: &[u8]) {
        let Some((method, name, body)) = about_a_key(protocol, request) else {
            return;
        };
        let mut facts = self.lock();
        let known = facts.known.entry(name.clone()).or_default();
        collect(&body["status"], &mut known.hashes);
        collect(&body["spec"], &mut known.hashes);
        let account = body["spec"]["accountId"].as_str();
        known.accounts.extend(account.map(str::to_owned));
        let finalizers = body["metadata"]["finalizers"].as_array();
        let keeps = |list: &Vec<Value>| list.iter().any(|name| name == FINALIZER);
        if method != "PATCH" || finalizers.is_none_or(keeps) {
            return;
        }
        facts.count += 1;
        let known = facts.known.remove(&name).unwrap_or_default();
        let Facts {
            stripped,
            violations,
            ..
        } = &mut *facts;
        for hash in known.hashes.difference(stripped) {
            // Without a copy the gate accepts nothing.
            let account = self.gate.account(hash).ok().flatten();
            if account.is_some_and(|account| known.accounts.contains(account.as_str())) {
                let found = format!("{name} is released while a gate accepts {hash}");
                violations.push(Violation::new(4, found));
            }
        }
    }

    /// Forgets an ApiKey that was deleted without its finalizer: its hashes are not those of a later
    /// ApiKey of the same name.
    pub fn strip(&self, name: &str) {
        let mut facts = self.lock();
        if let Some(known) = facts.known.remove(name) {
            facts.stripped.extend(known.hashes);
        }
    }

    /// Returns the number of ApiKeys that were released.
    pub fn count(&self) -> usize {
        self.lock().count
    }

    /// Returns the violations so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.lock().violations.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns method, ApiKey and body of a write to an ApiKey or its status.
fn about_a_key(protocol: Protocol, request: &[u8]) -> Option<(String, String, Value)> {
    if protocol != Protocol::Http {
        return None;
    }
    let summary = protocol.summary(request);
    let (method, target) = summary.split_once(' ')?;
    let (_, rest) = target.split_once("/apikeys/")?;
    let name = rest.split(['/', '?']).next()?;
    let end = request.windows(4).position(|four| four == b"\r\n\r\n")?;
    let body = serde_json::from_slice(&request[end + 4..]).ok()?;
    Some((method.to_owned(), name.to_owned(), body))
}

/// Collects the hashes in a value.
fn collect(value: &Value, hashes: &mut BTreeSet<KeyHash>) {
    match value {
        Value::String(text) => hashes.extend(text.parse::<KeyHash>()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, hashes)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, hashes)),
        _ => {}
    }
}
