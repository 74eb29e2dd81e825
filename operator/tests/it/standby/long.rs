//! Connections of which a leader does not know that they are dead.

use std::sync::Arc;

use serde_json::json;
use water_harness::Proxy;

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::rotation::Client;
use crate::steps::{edit, logs, ready};
use crate::world::{PATIENCE, World, brought, key};

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
    // Several of the standby's requests may first meet dead connections, each for ten seconds.
    world.in_force(&key("later")).await?;
    assert!(client.was_refused());
    assert!(!client.was_accepted(), "{}", standby.log_end());
    Ok(())
}
