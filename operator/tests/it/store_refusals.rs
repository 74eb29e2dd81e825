//! Tests of refusals by Redis: each is reported by its reason, by each ApiKey's condition and by a metric, and ends by
//! itself once Redis takes the same again.

mod long;

use std::sync::Arc;

use anyhow::{bail, ensure};
use water_harness::{Port, Process, Redis};

use crate::Result;
use crate::steps::{OBJECT, generation, logs, measured, message, ready, rebuilt, says, until};
use crate::world::{World, api, brought};

pub const USER: &str = "water-operator";
const PASSWORD: &str = "secret";

/// A world whose operator has a separate user at Redis.
pub async fn with_user(namespace: &str) -> anyhow::Result<(Redis, World, Arc<Process>)> {
    with_rights(namespace, "").await
}

/// A world whose operator's user has all rights but some.
async fn with_rights(namespace: &str, but: &str) -> anyhow::Result<(Redis, World, Arc<Process>)> {
    let redis = Redis::start_with(&[
        &format!("user {USER} on >{PASSWORD} ~* &* +@all {but}"),
        "enable-debug-command yes",
    ])
    .await?;
    let world = World::with_redis(namespace, &redis.url_as(USER, PASSWORD)).await?;
    world.apply(&api())?;
    let operator = world.operator("operator-0")?;
    world.in_force(&brought("first", '0')).await?;
    Ok((redis, world, operator))
}

/// Words of a WaterDataApi and of the log about a removal that fails.
const OLD: &str = "90 days old cannot be removed";

/// A world whose operator may not remove what is old, as its WaterDataApi says.
async fn with_old(namespace: &str) -> anyhow::Result<(Redis, World, Arc<Process>)> {
    let (redis, world, operator) = with_rights(namespace, "-zrange").await?;
    // What is old is removed once an hour, the first time soon.
    says(&world, OBJECT, "Degraded=True/StoreDenied", OLD).await?;
    Ok((redis, world, operator))
}

/// Waits until failures of that reason were counted.
async fn counted(world: &World, operator: &Process, reason: &str) -> Result {
    let name = format!("water_operator_store_failures_total{{reason=\"{reason}\"}}");
    measured(world, operator, &name).await
}

#[tokio::test]
async fn what_redis_refuses_is_told_by_its_reason_until_it_is_taken_again() -> Result {
    let (redis, world, operator) = with_user("refused").await?;
    let user = ["ACL", "SETUSER", USER];
    let right = format!(">{PASSWORD}");
    type Commands<'a> = &'a [&'a [&'a str]];
    let refusals: [(&str, &str, Commands, Commands); 4] = [
        (
            "StoreReadOnly",
            "read_only",
            &[&["REPLICAOF", "127.0.0.1", "1"]],
            &[&["REPLICAOF", "NO", "ONE"]],
        ),
        (
            "StoreDenied",
            "denied",
            &[&[&user[..], &["-evalsha", "-eval"]].concat()],
            &[&[&user[..], &["+@all"]].concat()],
        ),
        (
            "StoreWrongPassword",
            "wrong_password",
            // A connection that has given the old one stays.
            &[
                &[&user[..], &["resetpass", ">another"]].concat(),
                &["CLIENT", "KILL", "USER", USER],
            ],
            &[&[&user[..], &[&right]].concat()],
        ),
        (
            "StoreOutOfMemory",
            "out_of_memory",
            &[&["CONFIG", "SET", "maxmemory", "1"]],
            &[&["CONFIG", "SET", "maxmemory", "0"]],
        ),
    ];
    let term = async || anyhow::Ok(world.observe().await?.meta.map(|meta| meta.term));
    for ((reason, word, forbid, allow), digit) in refusals.into_iter().zip('1'..) {
        let before = term().await?;
        for command in forbid {
            redis.command(command).await?;
        }
        let name = format!("later-{digit}");
        world.apply(&brought(&name, digit))?;
        let (object, said) = (format!("apikey/{name}"), format!("False/{reason}"));
        world.condition(&object, "Synced", &said).await?;
        counted(&world, &operator, word).await?;
        // A wrong password is logged for the key directory.
        if reason != "StoreWrongPassword" {
            logs(&world, &operator, &format!("\"reason\":\"{reason}\"")).await?;
        }
        for command in allow {
            redis.command(command).await?;
        }
        ready(&world, &name, "True/Active").await?;
        // A write that Redis refused was not carried out: the directory need not be claimed again.
        if ["StoreDenied", "StoreOutOfMemory"].contains(&reason) {
            assert_eq!(term().await?, before, "{reason}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_redis_that_was_silent_and_then_refuses_the_password_is_told_to_refuse_it() -> Result {
    let (redis, world, operator) = with_user("refused-late").await?;
    let user = ["ACL", "SETUSER", USER];
    let another = [&user[..], &["resetpass", ">another"]].concat();
    redis.command(&another).await?;
    // A connection that has given the old one stays.
    redis.command(&["CLIENT", "KILL", "USER", USER]).await?;
    redis.pause()?;
    world.apply(&brought("later", '1'))?;
    let synced = async |said: &str| world.condition("apikey/later", "Synced", said).await;
    synced("False/StoreUnavailable").await?;
    redis.resume()?;
    synced("False/StoreWrongPassword").await?;
    let refused = "the key directory cannot be checked\",\"error\":\"cannot observe the key directory: Redis refuses";
    logs(&world, &operator, refused).await?;
    let right = format!(">{PASSWORD}");
    redis.command(&[&user[..], &[&right]].concat()).await?;
    ready(&world, "later", "True/Active").await.map(drop)
}

#[tokio::test]
async fn what_redis_refuses_besides_passes_is_told_counted_and_logged() -> Result {
    let (redis, world, operator) = with_user("refused-besides").await?;
    let user = ["ACL", "SETUSER", USER];
    let change = async |right: &str| redis.command(&[&user[..], &[right]].concat()).await;
    // Nothing else reads the leases so.
    change("-hgetall").await?;
    world.apply(&brought("later", '1'))?;
    let awaiting = "Reconciling=True/AwaitingGates";
    let why = "the gates cannot be asked";
    let told = says(&world, "apikey/later", awaiting, why).await?;
    ensure!(
        message(&told, "Reconciling").contains("lacks a right"),
        "{told}"
    );
    logs(
        &world,
        &operator,
        "cannot be asked whether they have applied a change",
    )
    .await?;
    counted(&world, &operator, "denied").await?;
    let strays = "nobody can see which gates follow the key directory";
    says(&world, OBJECT, "Degraded=True/StoreDenied", strays).await?;
    change("+@all").await?;
    ready(&world, "later", "True/Active").await?;

    change("-hset").await?;
    let (published, earlier) = (world.published().await?, generation(&world).await?);
    redis.command(&["FLUSHALL"]).await?;
    logs(&world, &operator, "the key directory cannot be rebuilt").await?;
    let denied = "False/StoreDenied";
    world.condition(OBJECT, "DirectorySynced", denied).await?;
    change("+@all").await?;
    rebuilt(&world, &published, earlier).await?;
    world.synced().await.map(drop)
}

#[tokio::test]
async fn what_is_old_and_cannot_be_removed_is_told_counted_and_logged() -> Result {
    let (_redis, world, operator) = with_old("refused-old").await?;
    logs(&world, &operator, OLD).await?;
    counted(&world, &operator, "denied").await
}

#[tokio::test]
async fn a_redis_that_loads_its_data_says_so() -> Result {
    let (redis, world, operator) = with_user("refused-loading").await?;
    let fill = ["DEBUG", "POPULATE", "4000", "beside", "2048"];
    redis.command(&fill).await?;
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
        until(&world, "Redis to load", loading).await?;
        world.apply(&brought("later", '5'))?;
        let said = "False/StoreLoading";
        world.condition("apikey/later", "Synced", said).await?;
        let at_once = ["CONFIG", "SET", "key-load-delay", "0"];
        redis.command(&at_once).await
    };
    // The load is answered when it ends, later than the harness waits for an answer.
    let (_, told) = tokio::join!(redis.command(&["DEBUG", "RELOAD"]), told);
    told?;
    counted(&world, &operator, "loading").await?;
    ready(&world, "later", "True/Active").await.map(drop)
}

#[tokio::test]
async fn a_cluster_that_lacks_its_slots_is_down() -> Result {
    let port = Port::reserve()?;
    let bus = format!("cluster-port {}", port.number());
    let redis = Redis::start_with(&["cluster-enabled yes", &bus]).await?;
    let world = World::with_redis("refused-cluster", &redis.url()).await?;
    world.apply(&api())?;
    let operator = world.operator("operator-0")?;
    let said = "False/StoreClusterDown";
    world.condition(OBJECT, "DirectorySynced", said).await?;
    counted(&world, &operator, "cluster_down").await
}
