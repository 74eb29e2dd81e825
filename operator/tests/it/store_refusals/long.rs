//! Removals by age, which are repeated by the next sweep, a minute later.

use serde_json::Value;

use super::{USER, counted, with_rights};
use crate::Result;
use crate::steps::{OBJECT, becomes, logs, says};
use crate::world::shown;

#[tokio::test]
async fn what_is_old_and_cannot_be_removed_is_told_until_it_can_be() -> Result {
    let (redis, world, operator) = with_rights("refused-old", "-zrange").await?;
    // What is old is removed once an hour, the first time soon.
    let (degraded, why) = ("Degraded=True/StoreDenied", "90 days old cannot be removed");
    says(&world, OBJECT, degraded, why).await?;
    logs(&world, &operator, why).await?;
    counted(&world, &operator, "denied").await?;
    redis.command(&["ACL", "SETUSER", USER, "+@all"]).await?;
    let healthy = |found: &Value| !shown(found, "Degraded").contains("StoreDenied");
    becomes(&world, OBJECT, "not degraded", healthy)
        .await
        .map(drop)
}
