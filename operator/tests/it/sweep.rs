//! What the sweep does: it withdraws keys whose ApiKey went without a revocation, unless they are too
//! many, and restores records that somebody changed.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use tokio::time::Instant;
use water_harness::Redis;

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::world::{API, PATIENCE, World, brought, shown};

/// Two sweeps, the first ten seconds after the start, and a margin.
const TWO_SWEEPS: Duration = Duration::from_secs(300);
/// Between two sweeps.
const EVERY: Duration = Duration::from_secs(60);

/// Takes the finalizer away and deletes the ApiKey, as somebody in a hurry does: a leader that stands
/// still meanwhile leads on.
pub async fn strip(world: &World, name: &str) -> Result {
    let path = format!(
        "/apis/waterdata.dev/v1/namespaces/{}/apikeys/{name}",
        world.namespace
    );
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    let length = patch.len();
    let mut api_server = world.cluster.proxy().connect().await?;
    for request in [
        format!(
            "PATCH {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/merge-patch+json\r\n\
             Content-Length: {length}\r\n\r\n{patch}"
        ),
        format!("DELETE {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
    ] {
        api_server.send(request).await?;
        let answer = api_server.answer().await?;
        ensure!(answer.status == 200, "{answer:?}");
    }
    Ok(())
}

/// A world with ten keys in force, of which these were stripped while no operator ran; another one
/// runs now.
async fn stripped(namespace: &str, names: &[&str]) -> anyhow::Result<World> {
    let (world, running) = World::running(namespace).await?;
    for digit in '0'..='9' {
        world.apply(&brought(&format!("key-{digit}"), digit))?;
    }
    for digit in '0'..='9' {
        let object = format!("apikey/key-{digit}");
        world.condition(&object, "Ready", "True/Active").await?;
    }
    running.stop(PATIENCE).await?;
    for name in names {
        strip(&world, name).await?;
    }
    Redis::shared()
        .await?
        .command(&["ZADD", &used(&world), "1", NEVER_USED])
        .await?;
    world.operator("second")?;
    Ok(world)
}

/// A key id with a last use of long ago: the operator's first sweep ends with forgetting it.
const NEVER_USED: &str = "000000000000";

/// Where last uses are kept.
fn used(world: &World) -> String {
    format!("wd:{{{}.{API}}}:used", world.namespace)
}

/// Waits until the operator has swept once.
async fn swept_once(world: &World) -> Result {
    let (redis, used) = (Redis::shared().await?, used(world));
    let forgotten = async || {
        let score = redis.command(&["ZSCORE", &used, NEVER_USED]).await?;
        ensure!(score.starts_with("$-1"), "{score}");
        Ok(())
    };
    world.wait("the first sweep", TWO_SWEEPS, forgotten).await
}

#[tokio::test]
async fn keys_stripped_while_no_operator_ran_outlast_one_sweep_and_go_with_the_second() -> Result {
    let names = ["key-0", "key-1", "key-2", "key-3"];
    let world = stripped("swept", &names).await?;
    swept_once(&world).await?;
    let first = Instant::now();
    assert_eq!(world.published().await?.len(), 10, "after one sweep");
    left(&world, 6).await?;
    let after = first.elapsed();
    assert!(after < EVERY * 3 / 2, "not by the second sweep: {after:?}");
    world
        .wait("the event", PATIENCE, async || {
            let events = world.events("water-data")?;
            ensure!(events.contains(&"KeysSwept".into()), "{events:?}");
            Ok(())
        })
        .await?;
    // A backup may bring the ApiKeys back: no tombstone bars their keys.
    for (name, digit) in names.iter().zip('0'..) {
        world.in_force(&brought(name, digit)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn most_keys_are_withdrawn_only_when_somebody_allows_it() -> Result {
    let names: Vec<String> = (0..6).map(|number| format!("key-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = stripped("held-back", &names).await?;
    world
        .wait("the sweep to be held back", TWO_SWEEPS, async || {
            let api = world.get("waterdataapi/water-data")?;
            ensure!(
                shown(&api, "Degraded") == "True/SweepHeld",
                "{}",
                api["status"]
            );
            Ok(())
        })
        .await?;
    assert_eq!(world.published().await?.len(), 10);
    let allow = json!({"metadata": {"annotations": {"waterdata.dev/sweep-up-to": "6"}}});
    world.patch("waterdataapi/water-data", &allow, &[])?;
    left(&world, 4).await
}

/// Turns the suspension of every record around, as nothing of the product does: bit 0 of its second
/// byte. Returns the count of records.
const TURN_AROUND: &str = "\
    local turned = 0 \
    for _, shard in ipairs(redis.call('KEYS', ARGV[1])) do \
        for _, hash in ipairs(redis.call('HKEYS', shard)) do \
            local record = redis.call('HGET', shard, hash) \
            local flags = string.char(bit.bxor(record:byte(2), 1)) \
            redis.call('HSET', shard, hash, record:sub(1, 1) .. flags .. record:sub(3)) \
            turned = turned + 1 \
        end \
    end \
    return turned";

#[tokio::test]
async fn records_that_somebody_changed_are_restored() -> Result {
    let (redis, world, _operator) = World::on_own_redis("sweep-restores").await?;
    world.in_force(&brought("active", 'a')).await?;
    let mut suspended = brought("suspended", 'b');
    suspended["spec"]["suspend"] = true.into();
    world.apply(&suspended)?;
    world
        .condition("apikey/suspended", "Ready", "True/Suspended")
        .await?;
    let before = world.published().await?;
    let records = "wd:{sweep-restores.water-data}:records:*";
    let turned = redis.command(&["EVAL", TURN_AROUND, "0", records]).await?;
    assert_eq!(turned, ":2\r\n");
    assert_ne!(world.published().await?, before);
    // It has loaded what was changed; no feed tells of that.
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let restored = async || {
        let published = world.published().await?;
        ensure!(published == before, "{published:?}");
        ensure!(
            gate.accepts(&"a".repeat(64))?,
            "the active key is suspended"
        );
        ensure!(
            !gate.accepts(&"b".repeat(64))?,
            "the suspended key is active"
        );
        Ok(())
    };
    world
        .wait("the records' restoration", TWO_SWEEPS, restored)
        .await
}

/// Waits until the directory holds so many keys.
async fn left(world: &World, count: usize) -> Result {
    world
        .wait("keys to be swept", TWO_SWEEPS, async || {
            let published = world.published().await?;
            ensure!(published.len() == count, "{published:?}");
            Ok(())
        })
        .await
}
