//! Admission policies for one world's namespace.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::Result;
use crate::rights::ACCOUNT;
use crate::steps::until;
use crate::world::World;

/// Flags of an API server of version 1.35 that serves policies which change what is written.
pub const MUTATING: &[&str] = &[
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
];
/// True of what an operator writes, in CEL.
pub const BY_OPERATOR: &str = "request.userInfo.username.endsWith(':water-operator')";

/// A policy and its binding.
pub struct Policy<'a> {
    world: &'a World,
    kind: &'static str,
    name: String,
}

/// Creations and updates of these resources of a group.
pub fn writes_of(group: &str, resources: &[&str]) -> Value {
    json!({
        "apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": resources,
    })
}

/// Refuses writes that meet a condition and of which `allowed` is not true, with this message.
pub fn refuse<'a>(
    world: &'a World,
    writes: &Value,
    condition: &str,
    allowed: &str,
    message: &str,
) -> anyhow::Result<Policy<'a>> {
    let does = json!({ "validations": [{ "expression": allowed, "message": message }] });
    let (kind, version) = ("ValidatingAdmissionPolicy", "v1");
    Policy::apply(world, (kind, version, "refuses"), writes, condition, does)
}

/// Changes writes that meet a condition by a JSON patch.
pub fn change<'a>(
    world: &'a World,
    name: &str,
    writes: &Value,
    condition: &str,
    patch: &str,
) -> anyhow::Result<Policy<'a>> {
    let patch = json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": patch } });
    let does = json!({ "mutations": [patch], "reinvocationPolicy": "Never" });
    let (kind, version) = ("MutatingAdmissionPolicy", "v1beta1");
    Policy::apply(world, (kind, version, name), writes, condition, does)
}

/// Waits until an operator's label on an object is refused, or is not. None is written.
pub async fn refused(world: &World, object: &str, label: &str, is_refused: bool) -> Result {
    let operator = format!("--as=system:serviceaccount:{}:{ACCOUNT}", world.namespace);
    let dry = "--dry-run=server";
    until(world, "the policy", async || {
        let labelled = world.kubectl(&["label", object, label, "--overwrite", dry, &operator]);
        ensure!(labelled.is_err() == is_refused, "{labelled:?}");
        Ok(())
    })
    .await
}

/// Writes a label until it stays, or until it does not.
pub async fn stays(world: &World, object: &str, label: &str, stays: bool) -> Result {
    let labels = json!({ "metadata": { "labels": { label: "probe" } } });
    until(world, "the policy", async || {
        world.patch(object, &labels, &[])?;
        let found = world.get(object)?;
        ensure!(
            (found["metadata"]["labels"][label] == "probe") == stays,
            "{found}"
        );
        Ok(())
    })
    .await
}

impl<'a> Policy<'a> {
    fn apply(
        world: &'a World,
        (kind, version, name): (&'static str, &str, &str),
        writes: &Value,
        condition: &str,
        mut does: Value,
    ) -> anyhow::Result<Self> {
        let name = format!("{}-{name}", world.namespace);
        let within = json!({ "matchLabels": { "kubernetes.io/metadata.name": world.namespace } });
        does["matchConstraints"] =
            json!({ "namespaceSelector": within, "resourceRules": [writes] });
        does["matchConditions"] = json!([{ "name": "condition", "expression": condition }]);
        let mut binding = json!({ "policyName": name });
        if kind == "ValidatingAdmissionPolicy" {
            binding["validationActions"] = json!(["Deny"]);
        }
        for (kind, spec) in [(kind.to_owned(), does), (format!("{kind}Binding"), binding)] {
            let object = json!({
                "apiVersion": format!("admissionregistration.k8s.io/{version}"), "kind": kind,
                "metadata": { "name": name }, "spec": spec,
            });
            world.cluster.apply(&object.to_string())?;
        }
        Ok(Self { world, kind, name })
    }

    /// Ends it.
    pub fn lift(self) -> Result {
        for kind in [format!("{}Binding", self.kind), self.kind.to_owned()] {
            self.world.cluster.kubectl(&["delete", &kind, &self.name])?;
        }
        Ok(())
    }
}
