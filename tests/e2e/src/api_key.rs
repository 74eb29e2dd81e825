//! ApiKey objects, described by what a test cares about.

use serde_json::{Value, json};

/// An ApiKey to apply; without more words an active one of the Enterprise plan.
#[derive(Clone, Debug)]
pub struct ApiKey {
    name: String,
    spec: Value,
}

impl ApiKey {
    /// A key whose account has the same name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            spec: json!({ "accountId": name, "plan": "Enterprise" }),
        }
    }

    /// Sets another account.
    pub fn of_account(self, account: &str) -> Self {
        self.with("accountId", account)
    }

    /// Sets another plan.
    pub fn on_plan(self, plan: &str) -> Self {
        self.with("plan", plan)
    }

    /// Sets this field in its spec.
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.spec[field] = value.into();
        self
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the object for `kubectl apply`.
    pub fn manifest(&self) -> Value {
        json!({
            "apiVersion": "waterdata.dev/v1",
            "kind": "ApiKey",
            "metadata": { "name": self.name },
            "spec": self.spec,
        })
    }
}
