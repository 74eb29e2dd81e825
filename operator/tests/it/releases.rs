//! When a finalizer goes: the key is dead, or nothing is left that could accept it, and no later
//! installation brings it back.

use anyhow::ensure;

use crate::Result;
use crate::gate::{GRACE, Gate, end_pod};
use crate::world::{PATIENCE, World, api, brought};

/// A key in force whose WaterDataApi is gone, and an operator that has never seen that.
async fn without_api(namespace: &str, digit: char) -> anyhow::Result<(World, impl Sized)> {
    let (world, operator) = World::running(namespace).await?;
    world.in_force(&brought("acme", digit)).await?;
    operator.kill()?;
    world.kubectl(&["delete", "waterdataapi", "water-data"])?;
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    Ok((world, operator))
}

#[tokio::test]
async fn a_key_of_a_gone_api_without_gates_can_go_and_does_not_come_back() -> Result {
    let (world, _killed) = without_api("gone-api", '3').await?;
    // Its Redis cannot be reached, and still holds it.
    assert_eq!(world.published().await?.len(), 1);
    let _next = world.operator("operator-0")?;
    world.gone("apikey/acme").await?;
    let told = async || {
        let events = world.events("acme")?;
        ensure!(events.contains(&"KeyNotRevoked".to_owned()), "{events:?}");
        Ok(())
    };
    world.wait("the event", PATIENCE, told).await?;
    world.apply(&api())?;
    world.synced().await?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_key_of_a_gone_api_stays_while_a_gate_may_accept_it() -> Result {
    let (world, operator) = World::running("gone-api-gates").await?;
    world.in_force(&brought("acme", '4')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    operator.kill()?;
    world.kubectl(&["delete", "waterdataapi", "water-data"])?;
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    let _next = world.operator("operator-0")?;
    let waits = async || {
        let found = world.get("apikey/acme")?;
        ensure!(found["status"]["waitingFor"][0] == "gate-0", "{found}");
        Ok(())
    };
    world.wait("the deletion to wait", PATIENCE, waits).await?;
    assert_eq!(gate.keys(), 1);
    end_pod(&world, "gate-0")?;
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn a_key_of_a_gone_api_is_revoked_while_the_operator_still_knows_its_redis() -> Result {
    let (world, operator) = World::running("gone-api-known").await?;
    world.in_force(&brought("acme", '5')).await?;
    world.kubectl(&["delete", "waterdataapi", "water-data"])?;
    world.kubectl(&["delete", "apikey", "acme"])?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    // Nothing refers to that Redis any more.
    let closed = async || {
        let log = operator.log();
        ensure!(
            log.contains("closing the key directory"),
            "{}",
            operator.log_end()
        );
        Ok(())
    };
    world
        .wait("the directory to be closed", PATIENCE, closed)
        .await
}

#[tokio::test]
async fn a_redis_that_is_flushed_once_its_api_and_keys_are_gone_stays_empty() -> Result {
    let (redis, world, _operator) = World::on_own_redis("gone-api-flushed").await?;
    world.in_force(&brought("acme", '6')).await?;
    world.kubectl(&["delete", "waterdataapi", "water-data"])?;
    world.kubectl(&["delete", "apikey", "acme"])?;
    // Who is not connected fills nothing. The list names its asker too.
    let left = async || {
        let clients = redis.command(&["CLIENT", "LIST"]).await?;
        let connected = clients.matches(" addr=").count();
        ensure!(connected == 1, "{clients}");
        Ok(())
    };
    world.wait("the operator to leave", PATIENCE, left).await?;
    redis.command(&["FLUSHALL"]).await?;
    assert_eq!(redis.command(&["DBSIZE"]).await?, ":0\r\n");
    Ok(())
}
