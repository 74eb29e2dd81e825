//! An ApiKey is stored that the definition allows and no operator can read: it keeps its key, and
//! every other key goes its way.

use anyhow::Result;
use serde_json::json;
use tokio::time::Instant;

use crate::population::{Population, delete, in_force};
use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_key_that_nobody_can_read_keeps_its_key_and_holds_up_no_other() -> Result<()> {
    let stage = Stage::new("unreadable-key").await?;
    let population = Population::of(&stage).await?;
    let kept = in_force(&stage, "comma", 'c').await?;
    let comma = json!({ "spec": { "notBefore": "2026-01-01T00:00:00,5Z" } });
    stage.world.patch("apikey/comma", &comma, &[])?;
    population.change(&stage).await?;
    let changed = Instant::now();
    stage
        .world
        .condition("apikey/comma", "Stalled", "True/Undecodable")
        .await?;
    population.rest(&stage, changed).await?;
    stage.holds_for_good().await?;
    delete(&stage, "comma", kept).await?;
    stage.holds().await
}
