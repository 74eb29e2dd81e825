//! Fields of its keys that the portal may change: every field of the definition is a row.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::{Value, json};
use water_resources::definitions;

use super::Portal;
use crate::Result;

/// Right of the portal to change a field of its keys.
#[derive(PartialEq, Debug)]
enum Change {
    May,
    MayNot,
}

/// A change of each field of an ApiKey's spec, and whether the portal may make it.
#[rustfmt::skip]
fn changes(namespace: &str) -> Vec<(&'static str, Change, Value)> {
    use Change::{May, MayNot};
    let digits = |digit: &str| digit.repeat(64);
    let hash = |sha256: String, id: Option<&str>| json!({ "material": { "hash": { "sha256": sha256, "keyId": id } } });
    let generated = |value: Value| json!({ "material": { "generated": value, "hash": null } });
    let rotation = |field: &str, value: i64| json!({ "rotation": { field: value } });
    vec![
        ("accountId", MayNot, json!({ "accountId": "globex" })),
        ("plan", May, json!({ "plan": "Free" })),
        ("apiRef", MayNot, json!({ "apiRef": null })),
        ("apiRef.name", MayNot, json!({ "apiRef": { "name": "other" } })),
        ("apiRef.namespace", MayNot, json!({ "apiRef": { "namespace": namespace } })),
        ("description", May, json!({ "description": "test" })),
        ("suspend", MayNot, json!({ "suspend": true })),
        ("notBefore", MayNot, json!({ "notBefore": "2027-01-01T00:00:00Z" })),
        ("expirationTime", May, json!({ "expirationTime": null })),
        ("material", MayNot, json!({ "material": null })),
        ("material.generated", MayNot, generated(json!({}))),
        ("material.generated.secretName", MayNot, generated(json!({ "secretName": "mine" }))),
        ("material.generated.deletionPolicy", MayNot, generated(json!({ "deletionPolicy": "Retain" }))),
        ("material.hash", May, hash(digits("b"), Some("CCCCdddd0000"))),
        ("material.hash.sha256", May, hash(digits("c"), None)),
        ("material.hash.keyId", May, hash(digits("d"), Some("EEEEffff0000"))),
        ("rotation", May, json!({ "rotation": null })),
        ("rotation.revision", MayNot, rotation("revision", 1)),
        ("rotation.periodSeconds", MayNot, rotation("periodSeconds", 90_000)),
        ("rotation.overlapSeconds", May, rotation("overlapSeconds", 3600)),
    ]
}

/// Every field below a schema, `a.b` for `b` in `a`.
fn fields(prefix: &str, schema: &JSONSchemaProps, found: &mut BTreeSet<String>) {
    for (name, property) in schema.properties.iter().flatten() {
        let path = format!("{prefix}{name}");
        fields(&format!("{path}."), property, found);
        found.insert(path);
    }
}

#[test]
fn a_change_of_every_field_of_a_key_is_tried() {
    let [definition, _] = definitions();
    let schema = definition.spec.versions[0].schema.clone();
    let properties = schema.and_then(|schema| schema.open_api_v3_schema?.properties);
    let mut known = BTreeSet::new();
    fields("", &properties.unwrap()["spec"], &mut known);
    let tried = changes("any").into_iter();
    let tried: BTreeSet<String> = tried.map(|(field, _, _)| field.to_owned()).collect();
    let what = "decide whether the portal may change a new field: in templates/portal.yaml of the chart, and here";
    assert_eq!(known, tried, "{what}");
}

#[tokio::test]
async fn the_portal_changes_hash_overlap_expiry_plan_and_title_of_its_own_keys_and_nothing_else()
-> Result {
    let portal = Portal::in_namespace("portal-changes").await?;
    portal.create(&portal.own("own"), &[])?;
    for (field, change, spec) in changes(&portal.world.namespace) {
        let outcome = portal.patch("own", &json!({ "spec": spec }));
        let may = change == Change::May;
        assert_eq!(outcome.is_ok(), may, "{field}: {outcome:?}");
    }
    Ok(())
}
