//! 4: the gates refuse a key before its finalizer goes. Looks at the operator's requests: at the one
//! that lets an ApiKey go, no gate may accept any hash that a status of it has named.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use water_domain::KeyHash;
use water_harness::Protocol;

use super::violation::Violation;
use crate::gate::Gate;

const FINALIZER: &str = "waterdata.dev/revoke";

/// What was found so far.
#[derive(Clone)]
pub struct Releases {
    gate: Arc<Gate>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// By the ApiKey's name.
    hashes: HashMap<String, BTreeSet<KeyHash>>,
    violations: Vec<Violation>,
}

impl Releases {
    /// Of keys that this gate knows.
    pub fn at(gate: &Arc<Gate>) -> Self {
        Self {
            gate: Arc::clone(gate),
            seen: Arc::default(),
        }
    }

    /// Looks at a request that is about to be delivered.
    pub fn see(&self, protocol: Protocol, request: &[u8]) {
        let Some((method, name, body)) = about_a_key(protocol, request) else {
            return;
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen.hashes.entry(name.clone()).or_default();
        collect(&body["status"], known);
        collect(&body["spec"], known);
        let finalizers = body["metadata"]["finalizers"].as_array();
        let keeps = |list: &Vec<Value>| list.iter().any(|name| name == FINALIZER);
        if method != "PATCH" || finalizers.is_none_or(keeps) {
            return;
        }
        let known = seen.hashes.remove(&name).unwrap_or_default();
        for hash in known {
            // Without a copy the gate accepts nothing.
            if self.gate.accepts(&hash.to_string()).unwrap_or(false) {
                let found = format!("{name} is let go while a gate accepts {hash}");
                seen.violations.push(Violation::of(4, found));
            }
        }
    }

    pub fn violations(&self) -> Vec<Violation> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.violations.clone()
    }
}

/// Method, ApiKey and body of a write to an ApiKey or its status.
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

/// All hashes that stand somewhere in a value.
fn collect(value: &Value, hashes: &mut BTreeSet<KeyHash>) {
    match value {
        Value::String(text) => hashes.extend(text.parse::<KeyHash>()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, hashes)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, hashes)),
        _ => {}
    }
}
