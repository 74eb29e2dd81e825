//! Objects of one namespace, read and written as the administrator, past every interceptor.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Secret;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use water_domain::{KeyHash, KeyPrefix, PlainKey};
use water_harness::{ApiProxy, ControlPlane, until_answered};
use water_resources::condition::ConditionStatus;
use water_resources::{ApiKey, ApiKeyStatus};

use super::samples::OBJECT;

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const LABEL: &str = "waterdata.dev/api-key";
const OWNER: &str = "waterdata.dev/api-key-uid";

/// Objects of a namespace by kind and name, such as `apikey/acme`.
#[derive(Clone)]
pub struct Objects {
    proxy: Arc<ApiProxy>,
    namespace: String,
}

impl Objects {
    /// Returns the objects of that namespace.
    pub fn new(cluster: &ControlPlane, namespace: &str) -> Self {
        Self {
            proxy: cluster.proxy(),
            namespace: namespace.into(),
        }
    }

    /// Returns an object as it is stored; none is an error that says `NotFound`.
    pub fn get(&self, object: &str) -> Result<Value> {
        let mut found = self.send("GET", &self.path(object)?, "", "")?;
        let metadata = found["metadata"].as_object_mut();
        metadata.context("an object")?.remove("managedFields");
        Ok(found)
    }

    /// Returns an object, if there is one.
    pub fn find<T: DeserializeOwned>(&self, object: &str) -> Result<Option<T>> {
        match self.get(object) {
            Ok(found) => Ok(Some(serde_json::from_value(found)?)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists objects of a kind, perhaps only those of a selector such as `labelSelector=…`.
    pub fn list(&self, kind: &str, selector: &str) -> Result<Vec<Value>> {
        let path = self.path(kind)?;
        let mut found = self.send("GET", &format!("{path}?{selector}"), "", "")?;
        match found["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("no list: {found}"),
        }
    }

    /// Applies an object on the server's side.
    pub fn apply(&self, object: &Value) -> Result<()> {
        let path = self.path(&named(object))?;
        let path = format!("{path}?fieldManager=kubectl&fieldValidation=Strict");
        self.send("PATCH", &path, APPLY, &object.to_string())
            .map(drop)
    }

    /// Creates an object.
    pub fn create(&self, object: &Value) -> Result<()> {
        let kind = named(object);
        let kind = kind.split('/').next().unwrap_or_default();
        self.send("POST", &self.path(kind)?, JSON, &object.to_string())
            .map(drop)
    }

    /// Merges a patch into an object, or into a subresource such as `apikey/acme/status`.
    pub fn patch(&self, object: &str, patch: &Value) -> Result<()> {
        self.send("PATCH", &self.path(object)?, MERGE, &patch.to_string())
            .map(drop)
    }

    /// Asks for the end of an object, and does not wait for it.
    pub fn delete(&self, object: &str) -> Result<()> {
        self.send("DELETE", &self.path(object)?, "", "").map(drop)
    }

    /// Asks for the end of an object with these options, and does not wait for it.
    pub fn delete_with(&self, object: &str, options: &Value) -> Result<()> {
        let path = self.path(object)?;
        self.send("DELETE", &path, JSON, &options.to_string())
            .map(drop)
    }

    /// Deletes a Secret, and none that replaced it.
    pub fn delete_exactly(&self, secret: &Secret) -> Result<()> {
        let name = secret.metadata.name.as_deref().unwrap_or_default();
        let uid = json!({ "preconditions": { "uid": secret.metadata.uid } });
        self.delete_with(&format!("secret/{name}"), &uid)
    }

    /// Sends a request and returns the answer of the API server; a refusal is an error with kubectl's words. A request
    /// that nobody answers is sent again, if it means the same however often it arrives.
    fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> Result<Value> {
        let send = || self.send_once(method, path, kind, body);
        match method {
            "GET" | "PATCH" => until_answered(send),
            _ => send(),
        }
    }

    fn send_once(&self, method: &str, path: &str, kind: &str, body: &str) -> Result<Value> {
        let (status, answer) = self.proxy.send(method, path, kind, body)?;
        let found: Value = serde_json::from_str(&answer)
            .with_context(|| format!("{method} {path}: {status}: {answer}"))?;
        match status {
            200..300 => Ok(found),
            _ => bail!("{method} {path}: {}", refusal(&found)),
        }
    }

    fn path(&self, object: &str) -> Result<String> {
        let (kind, name) = object.split_once('/').unwrap_or((object, ""));
        let (group, plural, is_global) =
            place_of(kind).with_context(|| format!("the path of a {kind}"))?;
        let namespace = if is_global {
            String::new()
        } else {
            format!("/namespaces/{}", self.namespace)
        };
        let path = format!("{group}{namespace}/{plural}/{name}");
        Ok(path.trim_end_matches('/').into())
    }

    /// Returns the ApiKey of that name.
    pub fn key(&self, name: &str) -> Result<Option<ApiKey>> {
        self.find(&format!("apikey/{name}"))
    }

    /// Returns the ApiKeys.
    pub fn keys(&self) -> Result<Vec<ApiKey>> {
        let keys = self.list("apikey", "")?.into_iter();
        Ok(keys.map(serde_json::from_value).collect::<Result<_, _>>()?)
    }

    /// Merges a patch into the ApiKey of that name.
    pub fn edit(&self, name: &str, patch: &Value) -> Result<()> {
        self.patch(&format!("apikey/{name}"), patch)
    }

    /// Merges a patch into the WaterDataApi.
    pub fn edit_api(&self, patch: &Value) -> Result<()> {
        self.patch(OBJECT, patch)
    }

    /// Returns the Secrets that hold an API key.
    pub fn secrets(&self) -> Result<Vec<Secret>> {
        let secrets = self.list("secret", &format!("labelSelector={LABEL}"))?;
        let secrets = secrets.into_iter().map(serde_json::from_value);
        Ok(secrets.collect::<Result<_, _>>()?)
    }

    /// Returns the hash of the text in the Secret of the ApiKey of that name.
    pub fn text_hash(&self, name: &str) -> Result<Option<KeyHash>> {
        let secret: Option<Secret> = self.find(&secret_of(name))?;
        secret.as_ref().map(text_hash).transpose()
    }

    /// Returns the operator that the Lease names.
    pub fn leader(&self) -> Result<Option<String>> {
        let lease: Option<Value> = self.find("lease/water-operator")?;
        let holder = lease.as_ref().map(|lease| &lease["spec"]["holderIdentity"]);
        Ok(holder.and_then(Value::as_str).map(str::to_owned))
    }
}

/// Whether the API server said that there is no such object.
pub fn is_missing(error: &anyhow::Error) -> bool {
    error.to_string().contains("NotFound")
}

/// Returns kind and name of an object.
fn named(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&object["kind"]).to_lowercase();
    format!("{kind}/{}", text(&object["metadata"]["name"]))
}

/// Returns kubectl's words about a status that is no success.
fn refusal(status: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (reason, message) = (text(&status["reason"]), text(&status["message"]));
    let causes = status["details"]["causes"].as_array();
    match (reason.as_str(), causes) {
        ("Invalid", Some(causes)) => {
            let causes = causes
                .iter()
                .map(|cause| format!("\n* {}: {}", text(&cause["field"]), text(&cause["message"])));
            let (kind, name) = (&status["details"]["kind"], &status["details"]["name"]);
            let causes: String = causes.collect();
            format!("The {} {name} is invalid: {causes}", text(kind))
        }
        ("", _) => format!("Error from server: {message}"),
        _ => format!("Error from server ({reason}): {message}"),
    }
}

/// Returns group and version in the path of a kind, its plural, and whether its objects are in no namespace.
fn place_of(kind: &str) -> Option<(&'static str, &'static str, bool)> {
    const WATER: &str = "/apis/waterdata.dev/v1";
    const CORE: &str = "/api/v1";
    const RIGHTS: &str = "/apis/rbac.authorization.k8s.io/v1";
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1";
    Some(match kind {
        "apikey" => (WATER, "apikeys", false),
        "waterdataapi" => (WATER, "waterdataapis", false),
        "configmap" => (CORE, "configmaps", false),
        "event" => (CORE, "events", false),
        "pod" => (CORE, "pods", false),
        "secret" => (CORE, "secrets", false),
        "service" => (CORE, "services", false),
        "serviceaccount" => (CORE, "serviceaccounts", false),
        "namespace" => (CORE, "namespaces", true),
        "deployment" => ("/apis/apps/v1", "deployments", false),
        "lease" => ("/apis/coordination.k8s.io/v1", "leases", false),
        "ingress" => ("/apis/networking.k8s.io/v1", "ingresses", false),
        "networkpolicy" => ("/apis/networking.k8s.io/v1", "networkpolicies", false),
        "role" => (RIGHTS, "roles", false),
        "rolebinding" => (RIGHTS, "rolebindings", false),
        "clusterrole" => (RIGHTS, "clusterroles", true),
        "clusterrolebinding" => (RIGHTS, "clusterrolebindings", true),
        "customresourcedefinition" | "crd" => (DEFINITIONS, "customresourcedefinitions", true),
        _ => return None,
    })
}

/// Names the Secret of the ApiKey of that name.
pub fn secret_of(key: &str) -> String {
    format!("secret/{key}-apikey")
}

/// Returns the uid of the ApiKey that a Secret says it belongs to.
pub fn owner(secret: &Secret) -> Option<&str> {
    let annotations = secret.metadata.annotations.as_ref()?;
    annotations.get(OWNER).map(String::as_str)
}

/// Returns the hash of the text in a Secret.
pub fn text_hash(secret: &Secret) -> Result<KeyHash> {
    let text = secret.data.as_ref().and_then(|data| data.get("api-key"));
    let text = text.context("the Secret has no api-key")?;
    Ok(PlainKey::parse(&text.0, &KeyPrefix::default())?.hash())
}

/// Returns a condition of the present spec as `<status>/<reason>`; nothing of an earlier one.
pub fn shown(key: &ApiKey, aspect: &str) -> String {
    reported(key.metadata.generation, key.status.as_ref(), aspect)
}

/// Returns a condition of the status of an object whose spec has that generation.
pub fn reported(generation: Option<i64>, status: Option<&ApiKeyStatus>, aspect: &str) -> String {
    let conditions = status.into_iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.filter(|condition| {
        Some(condition.observed_generation) == generation && condition.kind == aspect
    });
    let status = |status| match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    };
    conditions.next().map_or_else(String::new, |condition| {
        format!("{}/{}", status(condition.status), condition.reason)
    })
}

/// Returns the hash that the status calls current.
pub fn current(key: &ApiKey) -> Result<KeyHash> {
    let status = key.status.as_ref();
    let current = status.and_then(|status| status.current.as_ref());
    Ok(current.context("no current key")?.hash.parse()?)
}

/// Returns the uid of a stored ApiKey.
pub fn uid(key: &ApiKey) -> &str {
    key.metadata.uid.as_deref().unwrap_or_default()
}

/// Returns the name of a stored ApiKey.
pub fn name(key: &ApiKey) -> &str {
    key.metadata.name.as_deref().unwrap_or_default()
}
