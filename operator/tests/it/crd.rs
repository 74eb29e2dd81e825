//! `crd apply` replaces what is there.

use serde_json::json;
use water_harness::ControlPlane;

use crate::Result;
use crate::world::install_definitions;

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
