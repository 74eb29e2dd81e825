//! An ApiKey is stored that the definition allows and no operator can read: it keeps its key, and
//! every other key goes its way.

use anyhow::Result;
use serde_json::json;
use tokio::time::Instant;
use water_kit::operator::stage::Stage;

use super::population::Population;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_16_an_api_key_that_nobody_can_read_keeps_its_key_and_holds_up_no_other() -> Result<()>
{
    let stage = Stage::new("unreadable-key").await?;
    let population = Population::make(&stage).await?;
    let kept = stage.bring("comma", 'c').await?;
    let comma = json!({ "spec": { "notBefore": "2026-01-01T00:00:00,5Z" } });
    stage.objects.edit("comma", &comma)?;
    population.change(&stage)?;
    let changed = Instant::now();
    let undecodable = "True/Undecodable";
    stage
        .condition("apikey/comma", "Stalled", undecodable)
        .await?;
    population.rest(&stage, changed).await?;
    stage.holds_for_good().await?;
    stage.revoke("comma", kept).await?;
    stage.holds().await
}
