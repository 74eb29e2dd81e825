//! 5: a key's text is in its Secret alone.

use anyhow::{Result, ensure};
use water_harness::{HttpClient, Redis, find_key_text};

use super::Violation;
use crate::operator::world::World;

/// Searches the operators' logs and all that Redis and etcd hold. Events, statuses and annotations are in
/// etcd as they are shown.
pub async fn texts(world: &World, redis: &Redis) -> Result<Vec<Violation>> {
    let etcd = world.cluster.etcd_dump_without_secrets(&world.namespace);
    let searched = [
        found_in("the operators' logs", world.logs()),
        found_in("Redis' dump", dump(redis).await?),
        found_in("etcd's dump", etcd.await?),
    ];
    Ok(searched.into_iter().flatten().collect())
}

/// Searches the metrics of the operators that run, at least one. Each must answer.
pub async fn metrics(world: &World) -> Result<Vec<Violation>> {
    let (admins, mut found) = (world.admins()?, Vec::new());
    ensure!(!admins.is_empty(), "no operator runs");
    for admin in admins {
        let client = HttpClient::connect(admin).await?;
        let answer = client
            .host("operator")
            .request("GET", "/metrics", &[])
            .await?;
        ensure!(answer.status == 200, "/metrics answers {}", answer.status);
        found.extend(found_in("an operator's metrics", &answer.body));
    }
    Ok(found)
}

fn found_in(place: &str, searched: impl AsRef<[u8]>) -> Option<Violation> {
    let key = find_key_text(searched)?;
    Some(Violation::new(
        5,
        format!("the text of {key} is in {place}"),
    ))
}

/// Returns the content of Redis, as it would write it to disk. It writes nothing: after a kill it would begin
/// with that.
async fn dump(redis: &Redis) -> Result<String> {
    const ALL: &str = "local all = {} \
        for _, key in ipairs(redis.call('KEYS', '*')) do \
            all[#all + 1] = key .. ' ' .. redis.call('DUMP', key) \
        end \
        return all";
    redis
        .command(&["CONFIG", "SET", "rdbcompression", "no"])
        .await?;
    redis.command(&["EVAL", ALL, "0"]).await
}
