//! What Redis refuses is told by its reason, by each ApiKey's condition and by a metric, and ends by itself
//! once Redis takes the same again.

use std::sync::Arc;

use anyhow::{bail, ensure};
use water_harness::{Port, Process, Redis};

use crate::Result;
use crate::store_faults::{admin_address, metrics};
use crate::world::{PATIENCE, World, api, brought};

pub const USER: &str = "water-operator";
const PASSWORD: &str = "secret";

/// A world whose operator has a user of its own at Redis.
pub async fn with_user(namespace: &str) -> anyhow::Result<(Redis, World, Arc<Process>)> {
    let redis = Redis::start_with(&[
        &format!("user {USER} on >{PASSWORD} ~* &* +@all"),
        "enable-debug-command yes",
    ])
    .await?;
    let world = World::with_redis(namespace, &redis.url_as(USER, PASSWORD)).await?;
    world.apply(&api())?;
    let operator = world.operator("operator-0")?;
    world.in_force(&brought("first", '0')).await?;
    Ok((redis, world, operator))
}

/// Whether failures of that reason were counted.
async fn is_counted(world: &World, operator: &Process, reason: &str) -> Result {
    let address = admin_address(world, operator).await?;
    let name = format!("water_operator_store_failures_total{{reason=\"{reason}\"}} ");
    let counted = async || {
        let metrics = metrics(&address).await?;
        let mut counts = metrics.lines().filter_map(|line| line.strip_prefix(&name));
        ensure!(counts.any(|count| count != "0"), "{metrics}");
        Ok(())
    };
    world.wait("the metric", PATIENCE, counted).await
}

/// Redis refuses what these commands forbid, until the others allow it again.
async fn refused(
    namespace: &str,
    digit: char,
    (reason, word): (&str, &str),
    forbid: &[&[&str]],
    allow: &[&[&str]],
) -> Result {
    let (redis, world, operator) = with_user(namespace).await?;
    for command in forbid {
        redis.command(command).await?;
    }
    world.apply(&brought("later", digit))?;
    let said = format!("False/{reason}");
    world.condition("apikey/later", "Synced", &said).await?;
    is_counted(&world, &operator, word).await?;
    for command in allow {
        redis.command(command).await?;
    }
    let key = world.condition("apikey/later", "Ready", "True/Active");
    key.await?;
    Ok(())
}

#[tokio::test]
async fn a_replica_takes_no_writes() -> Result {
    let replica: &[&str] = &["REPLICAOF", "127.0.0.1", "1"];
    let primary: &[&str] = &["REPLICAOF", "NO", "ONE"];
    let reason = ("StoreReadOnly", "read_only");
    refused("refused-replica", '1', reason, &[replica], &[primary]).await
}

#[tokio::test]
async fn a_user_that_lacks_a_right_is_denied() -> Result {
    let less: &[&str] = &["ACL", "SETUSER", USER, "-evalsha", "-eval"];
    let all: &[&str] = &["ACL", "SETUSER", USER, "+@all"];
    let reason = ("StoreDenied", "denied");
    refused("refused-right", '2', reason, &[less], &[all]).await
}

#[tokio::test]
async fn a_password_that_was_changed_is_refused() -> Result {
    let (wrong, right) = (">another", format!(">{PASSWORD}"));
    let changed: &[&str] = &["ACL", "SETUSER", USER, "resetpass", wrong];
    // Whoever has given the old one stays.
    let ended: &[&str] = &["CLIENT", "KILL", "USER", USER];
    let restored: &[&str] = &["ACL", "SETUSER", USER, &right];
    let reason = ("StoreWrongPassword", "wrong_password");
    refused(
        "refused-password",
        '3',
        reason,
        &[changed, ended],
        &[restored],
    )
    .await
}

#[tokio::test]
async fn a_full_redis_is_out_of_memory() -> Result {
    let full: &[&str] = &["CONFIG", "SET", "maxmemory", "1"];
    let roomy: &[&str] = &["CONFIG", "SET", "maxmemory", "0"];
    let reason = ("StoreOutOfMemory", "out_of_memory");
    refused("refused-full", '4', reason, &[full], &[roomy]).await
}

#[tokio::test]
async fn a_redis_that_loads_its_data_says_so() -> Result {
    let (redis, world, operator) = with_user("refused-loading").await?;
    redis
        .command(&["DEBUG", "POPULATE", "4000", "beside", "2048"])
        .await?;
    for (name, value) in [
        ("rdbcompression", "no"),
        ("loading-process-events-interval-bytes", "1024"),
        // Microseconds for each key: minutes in all, until the test ends the load.
        ("key-load-delay", "50000"),
    ] {
        redis.command(&["CONFIG", "SET", name, value]).await?;
    }
    let told = async {
        let loading = async || match redis.command(&["PING"]).await {
            Err(error) if error.to_string().contains("LOADING") => Ok(()),
            answer => bail!("{answer:?}"),
        };
        world.wait("Redis to load", PATIENCE, loading).await?;
        world.apply(&brought("later", '5'))?;
        let said = "False/StoreLoading";
        world.condition("apikey/later", "Synced", said).await?;
        redis
            .command(&["CONFIG", "SET", "key-load-delay", "0"])
            .await
    };
    // The load is answered when it ends, later than the harness waits for an answer.
    let (_, told) = tokio::join!(redis.command(&["DEBUG", "RELOAD"]), told);
    told?;
    is_counted(&world, &operator, "loading").await?;
    let key = world.condition("apikey/later", "Ready", "True/Active");
    key.await?;
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_lacks_its_slots_is_down() -> Result {
    let port = Port::reserve()?;
    let bus = format!("cluster-port {}", port.number());
    let redis = Redis::start_with(&["cluster-enabled yes", &bus]).await?;
    let world = World::with_redis("refused-cluster", &redis.url()).await?;
    world.apply(&api())?;
    let operator = world.operator("operator-0")?;
    let api = "waterdataapi/water-data";
    let said = "False/StoreClusterDown";
    world.condition(api, "DirectorySynced", said).await?;
    is_counted(&world, &operator, "cluster_down").await
}
