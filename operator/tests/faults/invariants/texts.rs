//! 5: a key's text is in its Secret alone.

use anyhow::Result;
use water_harness::{HttpClient, Redis, find_key_text};

use super::violation::Violation;
use crate::world::World;

/// Searches the operators' logs, the metrics of the one whose admin port that is, events, statuses,
/// and what Redis and etcd hold.
pub async fn texts(
    world: &World,
    redis: &Redis,
    logs: String,
    admin: std::net::SocketAddr,
) -> Result<Vec<Violation>> {
    let metrics = HttpClient::connect(admin).await?;
    let metrics = metrics
        .host("operator")
        .request("GET", "/metrics", &[])
        .await?;
    let searched = [
        ("the operators' logs", logs.into_bytes()),
        ("the operator's metrics", metrics.body.to_vec()),
        (
            "events",
            world
                .kubectl(&["get", "events", "--output=json"])?
                .into_bytes(),
        ),
        (
            "ApiKeys",
            world
                .kubectl(&["get", "apikeys", "--output=json"])?
                .into_bytes(),
        ),
        ("Redis' dump", redis.dump().await?),
        (
            "etcd's dump",
            world
                .cluster
                .etcd_dump_without_secrets(&world.namespace)
                .await?,
        ),
    ];
    let found = searched.iter().filter_map(|(place, bytes)| {
        let key = find_key_text(bytes)?;
        Some(Violation::of(5, format!("the text of {key} is in {place}")))
    });
    Ok(found.collect())
}
