//! Work of a leader besides passes that is repeated after half a minute, or by the next sweep, a minute later.

use serde_json::Value;

use super::{USER, with_old, with_rights};
use crate::Result;
use crate::steps::{OBJECT, becomes, logs, says};
use crate::world::{World, shown};

#[tokio::test]
async fn what_is_old_and_cannot_be_removed_is_told_until_it_can_be() -> Result {
    let (redis, world, _operator) = with_old("refused-old-until").await?;
    redis.command(&["ACL", "SETUSER", USER, "+@all"]).await?;
    is_over(&world).await
}

#[tokio::test]
async fn last_uses_that_cannot_be_read_are_reported_until_they_can_be() -> Result {
    let (redis, world, operator) = with_rights("refused-uses", "-zmscore").await?;
    let words = "last uses of keys cannot be read";
    says(&world, OBJECT, "Degraded=True/StoreDenied", words).await?;
    logs(&world, &operator, words).await?;
    redis.command(&["ACL", "SETUSER", USER, "+@all"]).await?;
    is_over(&world).await
}

/// Waits until nothing is denied any more.
async fn is_over(world: &World) -> Result {
    let healthy = |found: &Value| !shown(found, "Degraded").contains("StoreDenied");
    becomes(world, OBJECT, "not degraded", healthy)
        .await
        .map(drop)
}
