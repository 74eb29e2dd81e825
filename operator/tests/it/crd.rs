//! `crd apply` replaces what is there.

use anyhow::ensure;
use serde_json::json;
use water_harness::ControlPlane;

use crate::Result;
use crate::steps::{OBJECT, event, says, until};
use crate::world::{API, World, api, install_definitions};

#[tokio::test]
async fn a_definition_that_lacks_a_field_is_reported_by_its_name() -> Result {
    let world = World::alone("definitions").await?;
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/reissues";
    let patch = json!([{ "op": "remove", "path": field }]).to_string();
    let name = "apikeys.waterdata.dev";
    let patch = ["patch", "crd", name, "--type=json", "--patch", &patch];
    world.cluster.kubectl(&patch)?;
    until(&world, "the API server to serve it", async || {
        let served = world
            .cluster
            .proxy()
            .get("/openapi/v3/apis/waterdata.dev/v1")?;
        ensure!(!served.contains("reissues"), "not yet");
        Ok(())
    })
    .await?;
    world.apply(&api())?;
    let _operator = world.operator("operator-0")?;
    let degraded = "Degraded=True/DefinitionsOutdated";
    says(&world, OBJECT, degraded, "ApiKey.status.reissues").await?;
    event(&world, API, "DefinitionsOutdated").await
}

#[tokio::test]
async fn apply_drops_what_an_earlier_version_had_and_keeps_what_others_said() -> Result {
    let cluster = ControlPlane::start().await?;
    install_definitions(&cluster).await?;
    let patch = json!({
        "metadata": { "annotations": { "helm.sh/resource-policy": "keep" } },
        "spec": { "names": { "shortNames": ["wdkey", "old"] } },
    });
    cluster.kubectl(&[
        "patch",
        "crd",
        "apikeys.waterdata.dev",
        "--type=merge",
        "--patch",
        &patch.to_string(),
    ])?;
    install_definitions(&cluster).await?;
    let shown = cluster.kubectl(&[
        "get",
        "crd",
        "apikeys.waterdata.dev",
        "--output=jsonpath={.spec.names.shortNames} {.metadata.annotations}",
    ])?;
    assert_eq!(shown, r#"["wdkey"] {"helm.sh/resource-policy":"keep"}"#);
    Ok(())
}
