//! The admission policy and a version of the definition that has more fields than it names.

use std::fs;

use anyhow::ensure;
use serde_json::{Value, json};
use water_harness::{ControlPlane, Redis, scratch_directory};
use water_resources::definitions;

use super::{Portal, merged};
use crate::Result;
use crate::steps::until;
use crate::world::{World, key};

/// The definition of ApiKeys with a field more at each place that has fields.
fn of_a_later_version() -> Value {
    let [definition, _] = definitions();
    let mut definition = serde_json::to_value(definition).expect("it is JSON");
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    for place in [
        "",
        "/properties/apiRef",
        "/properties/material",
        "/properties/material/properties/hash",
        "/properties/rotation",
    ] {
        let properties = definition.pointer_mut(&format!("{spec}{place}/properties"));
        let properties = properties.expect("it has properties");
        properties["later"] = json!({ "type": "string", "maxLength": 9 });
    }
    definition
}

#[tokio::test]
async fn a_field_that_a_later_version_adds_is_refused_until_the_policy_names_it() -> Result {
    let cluster = ControlPlane::start().await?;
    let redis = Redis::shared().await?;
    let world = World::on(cluster, "portal-later", &redis.url()).await?;
    world.cluster.kubectl(&["replace", "-f", &{
        let file = scratch_directory("portal")?.join("definition.json");
        fs::write(&file, of_a_later_version().to_string())?;
        file.to_string_lossy().into_owned()
    }])?;
    let portal = Portal::new(world).await?;
    // The API server takes a changed definition a moment later: until then it drops such fields.
    let mut probe = key("taken");
    probe["spec"]["later"] = "x".into();
    until(&portal.world, "the definition", async || {
        portal.world.apply(&probe)?;
        let taken = portal.world.get("apikey/taken")?;
        ensure!(taken["spec"]["later"] == "x", "{taken}");
        Ok(())
    })
    .await?;
    for spec in [
        json!({ "later": "x" }),
        json!({ "apiRef": { "later": "x" } }),
        json!({ "material": { "later": "x" } }),
        json!({ "material": { "hash": { "later": "x" } } }),
        json!({ "rotation": { "later": "x" } }),
    ] {
        let key = merged(portal.own("later"), &json!({ "spec": spec }));
        let outcome = portal.create(&key, &[]);
        assert!(portal.is_refused_by_policy(&outcome), "{spec}: {outcome:?}");
    }
    portal.create(&portal.own("known"), &[]).map(drop)
}
