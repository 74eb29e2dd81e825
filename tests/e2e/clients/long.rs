//! Every operation of the description, called by a generated client.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;
use water_e2e::Cluster;

use super::run_python;

#[tokio::test]
async fn a_client_generated_for_python_calls_every_operation_in_every_form_by_its_defaults()
-> Result<()> {
    // Alone: another test makes the same package, and an account gets one page of its history at a time.
    let cluster = Cluster::alone().await?;
    let answer = cluster
        .water
        .get_without_key("/api/v1/openapi.json")
        .await?;
    let printed = run_python(&cluster, "every_operation.py")?;
    let called: BTreeSet<_> = printed.lines().map(str::to_owned).collect();
    assert_eq!(called, operations(&answer.json()?)?);
    Ok(())
}

/// Returns method and path of each operation.
fn operations(description: &Value) -> Result<BTreeSet<String>> {
    let paths = description["paths"].as_object().context("no paths")?;
    let mut operations = BTreeSet::new();
    for (path, item) in paths {
        let methods = item.as_object().context("no operations")?.keys();
        operations.extend(methods.map(|method| format!("{method} {path}")));
    }
    Ok(operations)
}
