//! A gate that never completes its first load: it serves nothing, and no change waits for it.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use tokio::time::Instant;
use water_kit::is_all_asked_for;

use crate::Result;
use crate::gate::Gate;
use crate::steps::{current, edit, raise, ready, revoke, successor, until};
use crate::world::{World, key};

/// Time limit of a change while such a gate runs and nothing else does. Who waited for the gate would never end, since
/// it goes on renewing its lease.
const SOON: Duration = Duration::from_secs(10);
/// A user of Redis for whom each load fails.
const USER: &str = "loading";

#[tokio::test]
async fn fault_50_a_gate_that_never_completes_a_load_delays_no_change_for_ten_seconds() -> Result {
    let (redis, world, _operator) = World::on_own_redis("loading-gate").await?;
    let first = current(&world.in_force(&key("acme")).await?)?;
    let rights = [
        "ACL", "SETUSER", USER, "on", "nopass", "~*", "&*", "+@all", "-hgetall",
    ];
    redis.command(&rights).await?;
    let url = redis
        .url()
        .replace("redis://", &format!("redis://{USER}:any@"));
    let _gate = Gate::loading(&url, &world, "gate-0")?;
    until(&world, "the lease of a gate without a copy", async || {
        let leases = world.leases().await?;
        ensure!(
            leases.gates.iter().any(|lease| lease.generation == 0),
            "{leases:?}"
        );
        Ok(())
    })
    .await?;
    let within = |what: &str, begun: Instant| {
        let took = begun.elapsed();
        println!("{what}: {took:?}");
        ensure!(took < SOON || !is_all_asked_for(), "{what}: {took:?}");
        Ok(())
    };
    let begun = Instant::now();
    raise(&world, 1)?;
    successor(&world, &first).await?;
    within("a rotation", begun)?;
    let begun = Instant::now();
    world.in_force(&key("another")).await?;
    within("an issue", begun)?;
    let begun = Instant::now();
    edit(&world, "acme", &json!({ "suspend": true }))?;
    ready(&world, "acme", "True/Suspended").await?;
    within("a suspension", begun)?;
    let begun = Instant::now();
    revoke(&world, "acme").await?;
    within("a deletion", begun)
}
