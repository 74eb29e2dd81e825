//! Removals by age, which are repeated by the next sweep, a minute later.

use serde_json::Value;

use super::{USER, with_old};
use crate::Result;
use crate::steps::{OBJECT, becomes};
use crate::world::shown;

#[tokio::test]
async fn what_is_old_and_cannot_be_removed_is_told_until_it_can_be() -> Result {
    let (redis, world, _operator) = with_old("refused-old-until").await?;
    redis.command(&["ACL", "SETUSER", USER, "+@all"]).await?;
    let healthy = |found: &Value| !shown(found, "Degraded").contains("StoreDenied");
    becomes(&world, OBJECT, "not degraded", healthy)
        .await
        .map(drop)
}
