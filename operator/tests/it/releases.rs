//! Conditions for the removal of a finalizer: the key is dead, or nothing is left that could accept it, and no later
//! installation brings it back.

use anyhow::ensure;

use crate::Result;
use crate::gate::{GRACE, Gate, end_pod};
use crate::steps::{NOTHING, OBJECT, becomes, delete, event, holds, one_leadership, revoke, until};
use crate::world::{World, api, brought};

#[tokio::test]
async fn a_key_of_a_gone_api_goes_once_no_gate_may_accept_it_and_does_not_come_back() -> Result {
    let (world, operator) = World::running("gone-api").await?;
    world.in_force(&brought("acme", '3')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    operator.kill()?;
    world.kubectl(&["delete", OBJECT])?;
    delete(&world, "acme")?;
    let _next = world.operator("operator-0")?;
    let waits = |found: &serde_json::Value| found["status"]["waitingFor"][0] == "gate-0";
    becomes(&world, "apikey/acme", "waiting for the gate", waits).await?;
    assert_eq!(gate.keys(), 1);
    end_pod(&world, "gate-0")?;
    world.gone("apikey/acme").await?;
    // Its Redis cannot be reached, and still holds it.
    assert_eq!(world.published().await?.len(), 1);
    event(&world, "acme", "KeyNotRevoked").await?;
    world.apply(&api())?;
    world.synced().await?;
    holds(&world, &NOTHING).await
}

#[tokio::test]
async fn a_key_of_a_gone_api_goes_without_a_redis_that_went_too_and_without_a_restart() -> Result {
    let (redis, world, _operator) = World::on_own_redis("gone-api-redis").await?;
    world.in_force(&brought("acme", '7')).await?;
    redis.kill()?;
    world.kubectl(&["delete", OBJECT])?;
    revoke(&world, "acme").await?;
    event(&world, "acme", "KeyNotRevoked").await
}

#[tokio::test]
async fn a_key_of_a_gone_api_is_revoked_while_its_redis_is_known_which_is_left_afterwards() -> Result
{
    let start = async |namespace: &str| {
        let (redis, world, _operator) = World::on_own_redis(namespace).await?;
        anyhow::Ok((world, redis))
    };
    // The next leader does not know it.
    one_leadership("gone-api-known", start, async |world, redis| {
        world.in_force(&brought("acme", '5')).await?;
        world.kubectl(&["delete", OBJECT])?;
        revoke(world, "acme").await?;
        holds(world, &NOTHING).await?;
        // Who is not connected fills nothing. The list names its asker too.
        until(world, "the operator to leave", async || {
            let clients = redis.command(&["CLIENT", "LIST"]).await?;
            let connected = clients.matches(" addr=").count();
            ensure!(connected == 1, "{clients}");
            Ok(())
        })
        .await?;
        redis.command(&["FLUSHALL"]).await?;
        let size = redis.command(&["DBSIZE"]).await?;
        ensure!(size == ":0\r\n", "{size}");
        Ok(())
    })
    .await
}
