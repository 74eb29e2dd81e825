//! New keys that the portal may make: each form a row.

use anyhow::Context;
use serde_json::{Value, json};

use super::{Portal, merged};
use crate::Result;
use crate::world::key;

/// Forms that differ from the usual one by a merge patch.
type Forms = Vec<(&'static str, Value)>;

#[rustfmt::skip]
fn allowed(namespace: &str) -> Forms {
    let spec = |spec: Value| json!({ "spec": spec });
    vec![
        ("the usual one", json!({})),
        ("one for ever", spec(json!({ "expirationTime": null }))),
        ("one with an overlap", spec(json!({ "rotation": { "overlapSeconds": 0 } }))),
        ("one without a title", spec(json!({ "description": null }))),
        ("its namespace named", spec(json!({ "apiRef": { "namespace": namespace } }))),
    ]
}

#[rustfmt::skip]
fn forbidden() -> Forms {
    let spec = |spec: Value| json!({ "spec": spec });
    let metadata = |field: &str, value: Value| json!({ "metadata": { field: value } });
    let owner = json!({ "apiVersion": "v1", "kind": "Secret", "name": "a", "uid": "b" });
    vec![
        ("a generated key", spec(json!({ "material": { "generated": {}, "hash": null } }))),
        ("the default material", spec(json!({ "material": null }))),
        ("another API", spec(json!({ "apiRef": { "name": "other" } }))),
        ("an API elsewhere", spec(json!({ "apiRef": { "namespace": "other" } }))),
        ("no API", spec(json!({ "apiRef": null }))),
        ("a suspended key", spec(json!({ "suspend": true }))),
        ("a beginning", spec(json!({ "notBefore": "2027-01-01T00:00:00Z" }))),
        ("no label", metadata("labels", Value::Null)),
        ("another's label", metadata("labels", json!({ "app.kubernetes.io/managed-by": "Helm" }))),
        ("one more label", metadata("labels", json!({ "team": "a" }))),
        ("no annotation", metadata("annotations", Value::Null)),
        ("one more annotation", metadata("annotations", json!({ "waterdata.dev/reinstate": "x" }))),
        ("a finalizer", metadata("finalizers", json!(["example.com/stay"]))),
        ("an owner", metadata("ownerReferences", json!([owner]))),
    ]
}

#[tokio::test]
async fn the_portal_creates_keys_by_their_hash_for_its_own_api_and_no_others() -> Result {
    let portal = Portal::in_namespace("portal-creates").await?;
    for (index, (what, patch)) in allowed(&portal.world.namespace).into_iter().enumerate() {
        let key = merged(portal.own(&format!("allowed-{index}")), &patch);
        portal.create(&key, &[]).context(what)?;
    }
    for (what, patch) in forbidden() {
        let outcome = portal.create(&merged(portal.own("forbidden"), &patch), &[]);
        assert!(portal.is_refused_by_policy(&outcome), "{what}: {outcome:?}");
    }
    // The policy is the portal's alone.
    portal.world.apply(&key("generated-by-others"))
}
