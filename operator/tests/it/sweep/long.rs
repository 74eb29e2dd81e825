//! The second sweep, a minute after the first, withdraws keys whose ApiKey went without a revocation only when somebody
//! allows it, where they are too many.

use serde_json::json;

use super::stripped;
use crate::Result;
use crate::steps::{OBJECT, count};

#[tokio::test]
async fn fault_17_most_keys_are_withdrawn_only_when_somebody_allows_it() -> Result {
    let world = stripped("held-back", 6).await?;
    world
        .condition(OBJECT, "Degraded", "True/SweepHeld")
        .await?;
    assert_eq!(world.published().await?.len(), 10);
    let allow = json!({ "metadata": { "annotations": { "waterdata.dev/sweep-up-to": "6" } } });
    world.patch(OBJECT, &allow, &[])?;
    count(&world, 4).await.map(drop)
}
