//! Connections of which a leader does not know that they are dead.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use water_harness::Proxy;

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::rotation::Client;
use crate::steps::{edit, logs, ready};
use crate::world::{PATIENCE, World, brought, key, shown};

/// Several of a standby's requests may first meet connections of which it does not know that they are
/// dead, each for ten seconds.
const OVER_DEAD_CONNECTIONS: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_leader_with_dead_watches_undoes_no_suspension() -> Result {
    let (world, leader) = World::running("dead-watches").await?;
    world.in_force(&brought("acme", 'a')).await?;
    let gate = Arc::new(Gate::start(&world, "gate-0", GRACE).await?);
    let proxy = Proxy::before(world.cluster.address()).await?;
    let standby = world.operator_through("operator-1", &proxy)?;
    logs(&world, &standby, "the watches have told of everything").await?;
    proxy.half_open();
    edit(&world, "acme", &json!({ "suspend": true }))?;
    ready(&world, "acme", "True/Suspended").await?;
    let client = Client::start(&gate, &"a".repeat(64));
    leader.stop(PATIENCE).await?;
    world.apply(&key("later"))?;
    world
        .wait("the standby to act", OVER_DEAD_CONNECTIONS, async || {
            let found = world.get("apikey/later")?;
            ensure!(shown(&found, "Ready") == "True/Active", "{found}");
            Ok(())
        })
        .await?;
    assert!(client.was_refused());
    assert!(!client.was_accepted(), "{}", standby.log_end());
    Ok(())
}
