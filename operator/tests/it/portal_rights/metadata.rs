//! Tests of fields that the portal may not touch: metadata, keys of others, a suspension.

use serde_json::{Value, json};

use super::Portal;
use crate::Result;
use crate::world::key;

#[rustfmt::skip]
fn metadata() -> Vec<(&'static str, Value)> {
    let owner = json!({ "apiVersion": "v1", "kind": "Secret", "name": "a", "uid": "b" });
    let annotations = |name: &str, value: &str| json!({ "annotations": { name: value } });
    vec![
        ("another label", json!({ "labels": { "team": "a" } })),
        ("its own label", json!({ "labels": { "app.kubernetes.io/managed-by": null } })),
        ("a reinstatement", annotations("waterdata.dev/reinstate", "aaaaaaaaaaaa@now")),
        ("who asked", annotations("waterdata.dev/requested-by", "another")),
        ("who asked, away", json!({ "annotations": null })),
        ("a finalizer more", json!({ "finalizers": ["waterdata.dev/revoke", "example.com/stay"] })),
        ("no finalizer", json!({ "finalizers": null })),
        ("an owner", json!({ "ownerReferences": [owner] })),
    ]
}

#[tokio::test]
async fn the_portal_changes_no_metadata_of_a_key() -> Result {
    let portal = Portal::in_namespace("portal-metadata").await?;
    portal.create(&portal.own("own"), &[])?;
    let finalizers = json!({ "metadata": { "finalizers": ["waterdata.dev/revoke"] } });
    portal.world.patch("apikey/own", &finalizers, &[])?;
    for (what, metadata) in metadata() {
        let outcome = portal.patch("own", &json!({ "metadata": metadata }));
        assert!(portal.is_refused_by_policy(&outcome), "{what}: {outcome:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_portal_may_revoke_keys_of_others_and_not_change_them() -> Result {
    let portal = Portal::in_namespace("portal-others").await?;
    portal.world.apply(&key("generated"))?;
    let mut foreign = portal.own("foreign");
    foreign["metadata"]["labels"] = json!({ "app.kubernetes.io/managed-by": "Helm" });
    portal.world.apply(&foreign)?;
    for name in ["generated", "foreign"] {
        let outcome = portal.patch(name, &json!({ "spec": { "description": "mine" } }));
        assert!(portal.is_refused_by_policy(&outcome), "{name}: {outcome:?}");
        portal.kubectl(&["delete", "apikey", name])?;
    }
    Ok(())
}

#[tokio::test]
async fn a_suspension_by_others_stays_while_the_portal_rotates_the_key() -> Result {
    let portal = Portal::in_namespace("portal-suspended").await?;
    portal.create(&portal.own("own"), &[])?;
    let suspended = json!({ "spec": { "suspend": true } });
    portal.world.patch("apikey/own", &suspended, &[])?;
    let hash = json!({ "sha256": "b".repeat(64), "keyId": "BBBBcccc0000" });
    let rotated = json!({ "spec": { "material": { "hash": hash } } });
    portal.patch("own", &rotated)?;
    let resumed = portal.patch("own", &json!({ "spec": { "suspend": false } }));
    assert!(portal.is_refused_by_policy(&resumed), "{resumed:?}");
    Ok(())
}
