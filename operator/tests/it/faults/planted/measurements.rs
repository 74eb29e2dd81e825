//! A restart that writes, and one that does not: what is judged waits for two passes over the WaterDataApi.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::json;
use water_kit::operator::invariants::Violation;
use water_kit::operator::world::PATIENCE;

use super::{NAME, numbers, stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_that_writes_is_found() -> Result<()> {
    let (stage, _) = stage("planted-restart").await?;
    assert_eq!(stage.restart_writes().await?, []);
    stage.operator.stop(PATIENCE).await?;
    let before = stage.point().await?;
    stage.clients.forget();
    let suspend = json!({ "spec": { "suspend": true } });
    stage.objects.edit(NAME, &suspend)?;
    stage.start_again()?;
    // The passes over the WaterDataApi do not wait for those over keys.
    stage.key_is(NAME, "Ready", "True/Suspended").await?;
    let written = stage.writes_since(before).await?;
    ensure!(numbers(&written) == BTreeSet::from([6]), "{written:?}");
    let written: String = written.iter().map(Violation::to_string).collect();
    ensure!(written.contains("apikeys/acme/status"), "{written}");
    ensure!(written.contains("changed the directory"), "{written}");
    Ok(())
}
