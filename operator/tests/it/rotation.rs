//! A key that takes the place of another: at every moment one of them works, and two at most.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_domain::{KeyHash, Timestamp};
use water_harness::{Clock, Process, Redis};

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::turnover::{
    Client, SECRET, current, holds, look_again, raise, rotating, successor, text_hash,
};
use crate::world::{PATIENCE, World, api, brought, shown};

/// A world on a Redis with a clock of its own, a gate, and acme's key in force.
struct Stage {
    world: World,
    redis: Redis,
    clock: Clock,
    gate: Arc<Gate>,
    operator: Arc<Process>,
    first: String,
}

async fn stage(namespace: &str, key: &Value) -> anyhow::Result<Stage> {
    let clock = Clock::new()?;
    let redis = Redis::start_on(&clock).await?;
    let world = World::with_redis(namespace, &redis.url()).await?;
    world.apply(&api())?;
    let operator = world.operator("operator-0")?;
    world.synced().await?;
    let gate = Arc::new(Gate::start(&world, "gate-0", GRACE).await?);
    world.apply(key)?;
    let ready = world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    Ok(Stage {
        first: current(&ready)?,
        world,
        redis,
        clock,
        gate,
        operator,
    })
}

/// Waits until the status tells of no key but the current one.
async fn alone(world: &World) -> anyhow::Result<Value> {
    let ended = async || {
        let found = world.get("apikey/acme")?;
        ensure!(found["status"]["previous"].is_null(), "{found}");
        Ok(found)
    };
    world.wait("the end of the overlap", PATIENCE, ended).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_moment_of_a_rotation_is_without_a_key_and_the_overlap_ends_on_redis_clock() -> Result {
    let key = rotating(json!({ "overlapSeconds": 3000 }));
    let Stage {
        world,
        redis,
        clock,
        gate,
        operator: _operator,
        first,
    } = stage("rotate-overlap", &key).await?;
    let client = Client::start(&gate, &first);
    raise(&world, 1)?;
    let named = async || {
        let hash = text_hash(&world)?;
        ensure!(hash != first, "the first key");
        Ok(hash)
    };
    let second = world.wait("another text", PATIENCE, named).await?;
    // Published before it is revealed.
    assert!(gate.accepts(&second)?);
    let ready = successor(&world, &first).await?;
    let status = &ready["status"];
    assert_eq!(status["current"]["hash"], second.as_str());
    assert_eq!(status["current"]["revision"], 1);
    assert_eq!(status["previous"]["hash"], first.as_str());
    assert_eq!(
        status["secretResourceVersion"],
        world.get(SECRET)?["metadata"]["resourceVersion"]
    );
    let both = Client::start(&gate, &second);
    clock.set(2700)?;
    look_again(&world, "2700")?;
    assert_eq!(holds(&world, 2).await?.len(), 2);
    assert!(client.works(), "the first key, during the overlap");
    clock.set(3001)?;
    redis.command(&["PING"]).await?;
    let ended = async || {
        ensure!(!gate.accepts(&first)?, "the first key works");
        Ok(())
    };
    world.wait("the first key's end", PATIENCE, ended).await?;
    look_again(&world, "3001")?;
    alone(&world).await?;
    holds(&world, 1).await?;
    assert!(both.works(), "the second key");
    world.told("acme", &["KeyIssued", "KeyRotated"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_overlap_the_old_key_is_cut_when_the_new_one_works() -> Result {
    let key = rotating(json!({ "overlapSeconds": 0 }));
    let stage = stage("rotate-cut", &key).await?;
    raise(&stage.world, 1)?;
    let ready = successor(&stage.world, &stage.first).await?;
    assert!(!stage.gate.accepts(&stage.first)?);
    assert!(stage.gate.accepts(&current(&ready)?)?);
    assert_eq!(text_hash(&stage.world)?, current(&ready)?);
    assert!(ready["status"]["previous"].is_null());
    holds(&stage.world, 1).await?;
    stage.world.told("acme", &["KeyIssued", "KeyRotated"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_key_keeps_its_own_end_and_a_suspended_one_rotates_too() -> Result {
    let mut key = rotating(json!({ "overlapSeconds": 86_400 }));
    key["spec"]["expirationTime"] = "2100-01-01T00:00:00Z".into();
    let stage = stage("rotate-end", &key).await?;
    let soon = hour_after(&stage.world.get("apikey/acme")?["status"]["current"]["issuedTime"])?;
    // The same edit ends the key in an hour.
    let edit = json!({ "spec": { "expirationTime": soon, "suspend": true, "rotation": { "revision": 1 } } });
    stage.world.patch("apikey/acme", &edit, &[])?;
    let suspended = async || {
        let found = stage.world.get("apikey/acme")?;
        ensure!(shown(&found, "Ready") == "True/Suspended", "{found}");
        ensure!(current(&found)? != stage.first, "{found}");
        Ok(found)
    };
    let ready = stage.world.wait("another key", PATIENCE, suspended).await?;
    assert_eq!(ready["status"]["previous"]["retireTime"], soon.as_str());
    Ok(())
}

/// An hour after that time: before the end of an overlap of a day.
fn hour_after(issued: &Value) -> anyhow::Result<String> {
    let issued = water_domain::Timestamp::parse(issued.as_str().context("a time")?)?;
    let hour = Duration::from_secs(3600);
    Ok(issued.plus(hour).to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_period_is_counted_on_redis_clock() -> Result {
    let key = rotating(json!({ "periodSeconds": 1800, "overlapSeconds": 600 }));
    let stage = stage("rotate-period", &key).await?;
    let (world, first) = (&stage.world, &stage.first);
    let ready = world.get("apikey/acme")?;
    let issued = ready["status"]["current"]["issuedTime"].as_str();
    let issued = water_domain::Timestamp::parse(issued.context("a time")?)?;
    let due = issued.plus(Duration::from_secs(1800));
    assert_eq!(ready["status"]["nextRotationTime"], due.to_string());
    let client = Client::start(&stage.gate, first);
    stage.clock.set(1801)?;
    look_again(world, "1801")?;
    let second = current(&successor(world, first).await?)?;
    assert_eq!(text_hash(world)?, second);
    assert!(client.works(), "the first key");
    stage.clock.set(1801 + 601)?;
    look_again(world, "2402")?;
    let later = alone(world).await?;
    assert_eq!(current(&later)?, second, "not rotated again");
    assert_ne!(later["status"]["nextRotationTime"], due.to_string());
    world.told("acme", &["KeyIssued", "KeyRotated"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_rotation_during_an_overlap_ends_the_oldest_key() -> Result {
    let stage = stage("rotate-twice", &rotating(json!({ "overlapSeconds": 600 }))).await?;
    let (world, first) = (&stage.world, &stage.first);
    raise(world, 1)?;
    let second = current(&successor(world, first).await?)?;
    raise(world, 2)?;
    let ready = successor(world, &second).await?;
    assert_eq!(ready["status"]["previous"]["hash"], second.as_str());
    holds(world, 2).await?;
    assert!(!stage.gate.accepts(first)?);
    assert!(stage.gate.accepts(&second)?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_whose_leader_is_lost_before_the_secret_is_carried_through_once() -> Result {
    let stage = stage("rotate-lost", &rotating(json!({ "overlapSeconds": 600 }))).await?;
    let (world, first) = (&stage.world, &stage.first);
    world.told("acme", &["KeyIssued"]).await?;
    let client = Client::start(&stage.gate, first);
    stage.gate.fall_silent();
    raise(world, 1)?;
    holds(world, 2).await?;
    stage.operator.kill()?;
    assert_eq!(text_hash(world)?, *first);
    let _next = world.operator("operator-0")?;
    holds(world, 3).await?;
    stage.gate.follow();
    let ready = successor(world, first).await?;
    assert_eq!(text_hash(world)?, current(&ready)?);
    assert!(ready["status"]["unrevealed"].is_null());
    holds(world, 2).await?;
    assert!(client.works(), "the first key");
    world.told("acme", &["KeyIssued", "KeyRotated"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_whose_leader_is_lost_after_the_secret_is_told_by_the_next() -> Result {
    let stage = stage("rotate-told", &rotating(json!({ "overlapSeconds": 600 }))).await?;
    let (world, first) = (&stage.world, &stage.first);
    let before = world.get("apikey/acme")?["status"].clone();
    raise(world, 1)?;
    let second = successor(world, first).await?;
    stage.operator.kill()?;
    // The status as it was between the two writes.
    let between = json!({ "status": {
        "keyId": before["keyId"],
        "current": before["current"],
        "previous": null,
        "unrevealed": [second["status"]["current"]],
        "secretResourceVersion": before["secretResourceVersion"],
    } });
    world.patch("apikey/acme", &between, &["--subresource=status"])?;
    // And Redis as it was when it came back empty.
    stage.redis.command(&["FLUSHALL"]).await?;
    let client = async || {
        ensure!(stage.gate.accepts(first)?, "the first key is refused");
        ensure!(
            stage.gate.accepts(&current(&second)?)?,
            "the second key is refused"
        );
        Ok(())
    };
    let _next = world.operator("operator-0")?;
    let ready = successor(world, first).await?;
    assert_eq!(current(&ready)?, current(&second)?);
    assert_eq!(ready["status"]["previous"], second["status"]["previous"]);
    world
        .wait("both keys at the gate", PATIENCE, client)
        .await?;
    holds(world, 2).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_at_some_moment_of_a_rotation_leaves_none_without_a_key() -> Result
{
    let stage = stage("rotate-killed", &rotating(json!({ "overlapSeconds": 600 }))).await?;
    let world = &stage.world;
    let mut hash = stage.first.clone();
    // A rotation takes some 100 ms here: each kill hits another step of it.
    for (revision, delay) in (1..).zip([5, 20, 40, 60, 80, 120]) {
        let client = Client::start(&stage.gate, &hash);
        raise(world, revision)?;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        stage.operator.kill()?;
        let text = text_hash(world)?;
        assert!(stage.gate.accepts(&text)?, "the text in the Secret");
        stage.operator.start_again()?;
        let ready = successor(world, &hash).await?;
        assert!(client.works(), "the key before, {delay} ms");
        hash = current(&ready)?;
        assert_eq!(text_hash(world)?, hash);
        assert!(ready["status"]["unrevealed"].is_null());
        holds(world, 2).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_hash_works_beside_the_old_one_until_the_overlap_ends() -> Result {
    let with = |digit, rotation: Value| {
        let mut key = brought("acme", digit);
        key["spec"]["rotation"] = rotation;
        key
    };
    let overlap = || json!({ "overlapSeconds": 600 });
    let stage = stage("rotate-brought", &with('a', overlap())).await?;
    let (world, gate) = (&stage.world, &stage.gate);
    let hash = |digit: char| digit.to_string().repeat(64);
    let client = Client::start(gate, &hash('a'));
    world.apply(&with('b', overlap()))?;
    let ready = successor(world, &hash('a')).await?;
    assert_eq!(ready["status"]["previous"]["hash"], hash('a'));
    assert!(gate.accepts(&hash('b'))?);
    assert!(client.works(), "the first hash");
    stage.clock.set(601)?;
    look_again(world, "601")?;
    alone(world).await?;
    assert_eq!(holds(world, 1).await?, ["bbbbbbbbbbbb Enterprise Active"]);
    world.apply(&with('c', json!({ "overlapSeconds": 0 })))?;
    successor(world, &hash('b')).await?;
    assert!(!gate.accepts(&hash('b'))?);
    assert!(gate.accepts(&hash('c'))?);
    world
        .told("acme", &["KeyIssued", "KeyRotated", "KeyRotated"])
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overlap_that_runs_is_ended_by_declaring_none() -> Result {
    let with = |digit, overlap: u32| {
        let mut key = brought("acme", digit);
        key["spec"]["rotation"] = json!({ "overlapSeconds": overlap });
        key
    };
    let stage = stage("rotate-ended", &with('a', 600)).await?;
    let (world, gate) = (&stage.world, &stage.gate);
    let hash = |digit: char| digit.to_string().repeat(64);
    world.apply(&with('b', 600))?;
    successor(world, &hash('a')).await?;
    assert!(gate.accepts(&hash('a'))?);
    world.apply(&with('b', 0))?;
    alone(world).await?;
    assert!(!gate.accepts(&hash('a'))?);
    assert!(gate.accepts(&hash('b'))?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overlap_of_a_generated_key_is_ended_by_declaring_none() -> Result {
    let mut key = rotating(json!({ "overlapSeconds": 600 }));
    let stage = stage("rotate-cut-late", &key).await?;
    let (world, gate, first) = (&stage.world, &stage.gate, &stage.first);
    raise(world, 1)?;
    let second = current(&successor(world, first).await?)?;
    assert!(gate.accepts(first)?);
    key["spec"]["rotation"] = json!({ "revision": 1, "overlapSeconds": 0 });
    world.apply(&key)?;
    alone(world).await?;
    assert!(!gate.accepts(first)?);
    assert!(gate.accepts(&second)?);
    Ok(())
}

/// Waits until the directory says from when on this hash is refused.
async fn end_of(world: &World, digit: char) -> anyhow::Result<Timestamp> {
    let hash: KeyHash = digit.to_string().repeat(64).parse()?;
    let ends = async || {
        let stored = world.directory()?.stored().await?;
        let record = stored.get(&hash).and_then(|stored| stored.record.as_ref());
        record.context("no record")?.retires.context("no end")
    };
    world.wait("the hash to have an end", PATIENCE, ends).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_hash_ends_when_it_was_to_though_redis_forgot_it() -> Result {
    let with = |digit| {
        let mut key = brought("acme", digit);
        key["spec"]["rotation"] = json!({ "overlapSeconds": 600 });
        key
    };
    let stage = stage("rotate-forgotten", &with('a')).await?;
    let (world, gate) = (&stage.world, &stage.gate);
    world.in_force(&brought("partner", 'b')).await?;
    // The first hash retires although the next one is somebody else's.
    world.apply(&with('b'))?;
    let ends = end_of(world, 'a').await?;
    stage.redis.command(&["FLUSHALL"]).await?;
    assert_eq!(end_of(world, 'a').await?, ends);
    stage.clock.set(601)?;
    stage.redis.command(&["FLUSHALL"]).await?;
    let rebuilt = async || {
        let published = world.published().await?;
        ensure!(
            published == ["bbbbbbbbbbbb Enterprise Active"],
            "{published:?}"
        );
        Ok(())
    };
    world.wait("the rebuild", PATIENCE, rebuilt).await?;
    let ended = async || {
        ensure!(!gate.accepts(&"a".repeat(64))?, "the first hash works");
        Ok(())
    };
    world.wait("the first hash's end", PATIENCE, ended).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_replaced_when_its_period_is_over_though_nothing_happens() -> Result {
    let (world, _operator) = World::running("rotate-by-itself").await?;
    let key = rotating(json!({ "periodSeconds": 60, "overlapSeconds": 0 }));
    let first = current(&world.in_force(&key).await?)?;
    current(&successor(&world, &first).await?)?;
    Ok(())
}
