//! Which new keys the portal may make: each form a row.

use anyhow::Context;
use serde_json::json;

use super::{Portal, merged};
use crate::Result;
use crate::world::key;

#[tokio::test]
async fn the_portal_creates_keys_by_their_hash_for_its_own_api_and_no_others() -> Result {
    let portal = Portal::in_namespace("portal-creates").await?;
    let namespace = portal.world.namespace.clone();
    let managed_by = |value| json!({ "app.kubernetes.io/managed-by": value });
    let annotated = |name: &str| json!({ "metadata": { "annotations": { name: "x" } } });
    let allowed = [
        ("the usual one", json!({})),
        (
            "one for ever",
            json!({ "spec": { "expirationTime": null } }),
        ),
        (
            "one with an overlap",
            json!({ "spec": { "rotation": { "overlapSeconds": 0 } } }),
        ),
        (
            "one without a title",
            json!({ "spec": { "description": null } }),
        ),
        (
            "its namespace named",
            json!({ "spec": { "apiRef": { "namespace": namespace } } }),
        ),
    ];
    for (index, (what, patch)) in allowed.iter().enumerate() {
        let key = merged(portal.own(&format!("allowed-{index}")), patch);
        portal
            .create(&key, &[])
            .with_context(|| (*what).to_owned())?;
    }
    let generated = json!({ "generated": {}, "hash": null });
    let owner = json!({ "apiVersion": "v1", "kind": "Secret", "name": "a", "uid": "b" });
    let forbidden = [
        (
            "a generated key",
            json!({ "spec": { "material": generated } }),
        ),
        (
            "the default material",
            json!({ "spec": { "material": null } }),
        ),
        (
            "another API",
            json!({ "spec": { "apiRef": { "name": "other" } } }),
        ),
        (
            "an API elsewhere",
            json!({ "spec": { "apiRef": { "namespace": "other" } } }),
        ),
        ("no API", json!({ "spec": { "apiRef": null } })),
        ("a suspended key", json!({ "spec": { "suspend": true } })),
        (
            "a beginning",
            json!({ "spec": { "notBefore": "2027-01-01T00:00:00Z" } }),
        ),
        ("no label", json!({ "metadata": { "labels": null } })),
        (
            "another's label",
            json!({ "metadata": { "labels": managed_by("Helm") } }),
        ),
        (
            "one more label",
            json!({ "metadata": { "labels": { "team": "a" } } }),
        ),
        (
            "no annotation",
            json!({ "metadata": { "annotations": null } }),
        ),
        ("one more annotation", annotated("waterdata.dev/reinstate")),
        (
            "a finalizer",
            json!({ "metadata": { "finalizers": ["example.com/stay"] } }),
        ),
        (
            "an owner",
            json!({ "metadata": { "ownerReferences": [owner] } }),
        ),
    ];
    for (what, patch) in forbidden {
        let outcome = portal.create(&merged(portal.own("forbidden"), &patch), &[]);
        assert!(portal.is_refused_by_policy(&outcome), "{what}: {outcome:?}");
    }
    // The policy is the portal's alone.
    portal.world.apply(&key("generated-by-others"))
}
