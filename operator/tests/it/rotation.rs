//! Tests of a key that replaces another: at every moment one of them works, and two at most.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::interval;
use water_domain::Timestamp;
use water_harness::{Clock, Process, Redis};

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::steps::{
    SECRET, becomes, count, current, holds, look_again, raise, rotating, successor, text_hash,
    until,
};
use crate::world::{World, api, brought};

/// A world on a Redis with a separate clock, a gate, and acme's key in force.
struct Stage {
    world: World,
    redis: Redis,
    clock: Clock,
    gate: Arc<Gate>,
    _operator: Arc<Process>,
    first: String,
}

impl Stage {
    async fn new(namespace: &str, key: &Value) -> anyhow::Result<Self> {
        let clock = Clock::new()?;
        let redis = Redis::start_on(&clock).await?;
        let world = World::with_redis(namespace, &redis.url()).await?;
        world.apply(&api())?;
        let operator = world.operator("operator-0")?;
        world.synced().await?;
        let gate = Arc::new(Gate::start(&world, "gate-0", GRACE).await?);
        let first = current(&world.in_force(key).await?)?;
        Ok(Self {
            world,
            redis,
            clock,
            gate,
            _operator: operator,
            first,
        })
    }

    /// Moves Redis' clock that far ahead, and asks for a pass, as no clock does.
    fn pass_at(&self, seconds: i64) -> Result {
        self.clock.set(seconds)?;
        look_again(&self.world, "apikey/acme", &seconds.to_string())
    }

    /// Waits until the status names no key but the current one.
    async fn alone(&self) -> anyhow::Result<Value> {
        let is_alone = |found: &Value| found["status"]["previous"].is_null();
        becomes(&self.world, "apikey/acme", "alone", is_alone).await
    }

    /// Waits until the gate refuses a key.
    async fn refuses(&self, hash: &str) -> Result {
        until(&self.world, "a key's end", async || {
            ensure!(!self.gate.accepts(hash)?, "{hash} works");
            Ok(())
        })
        .await
    }
}

/// A client that asks the gate all the time, with one key.
pub struct Client {
    answers: Arc<Answers>,
    asking: JoinHandle<()>,
}

#[derive(Default)]
struct Answers {
    was_refused: AtomicBool,
    was_accepted: AtomicBool,
}

impl Client {
    /// Asks with the key of this hash, a thousand times a second.
    pub fn start(gate: &Arc<Gate>, hash: &str) -> Self {
        let answers = Arc::<Answers>::default();
        let (gate, hash, noted) = (Arc::clone(gate), hash.to_owned(), Arc::clone(&answers));
        let asking = tokio::spawn(async move {
            let mut pace = interval(Duration::from_millis(1));
            loop {
                pace.tick().await;
                let note = match gate.accepts(&hash) {
                    Ok(true) => &noted.was_accepted,
                    Ok(false) | Err(_) => &noted.was_refused,
                };
                note.store(true, Ordering::Relaxed);
            }
        });
        Self { answers, asking }
    }

    /// Whether the gate has accepted the key each time.
    pub fn works(&self) -> bool {
        self.was_accepted() && !self.was_refused()
    }

    /// Whether the gate has refused the key once.
    pub fn was_refused(&self) -> bool {
        self.answers.was_refused.load(Ordering::Relaxed)
    }

    /// Whether the gate has accepted the key once.
    pub fn was_accepted(&self) -> bool {
        self.answers.was_accepted.load(Ordering::Relaxed)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_moment_of_a_rotation_is_without_a_key_and_the_overlap_ends_on_redis_clock() -> Result {
    let key = rotating(json!({ "overlapSeconds": 3000 }));
    let stage = Stage::new("rotate-overlap", &key).await?;
    let (world, first) = (&stage.world, &stage.first);
    let client = Client::start(&stage.gate, first);
    raise(world, 1)?;
    let second = until(world, "another text", async || {
        let hash = text_hash(world)?;
        ensure!(hash != *first, "the first key");
        Ok(hash)
    })
    .await?;
    // Published before it is revealed.
    assert!(stage.gate.accepts(&second)?);
    let status = successor(world, first).await?["status"].clone();
    assert_eq!(status["current"]["hash"], second.as_str());
    assert_eq!(status["current"]["revision"], 1);
    assert_eq!(status["previous"]["hash"], first.as_str());
    let version = &world.get(SECRET)?["metadata"]["resourceVersion"];
    assert_eq!(status["secretResourceVersion"], *version);
    let both = Client::start(&stage.gate, &second);
    stage.pass_at(2700)?;
    assert_eq!(count(world, 2).await?.len(), 2);
    assert!(client.works(), "the first key, during the overlap");
    stage.clock.set(3001)?;
    stage.redis.command(&["PING"]).await?;
    stage.refuses(first).await?;
    stage.pass_at(3001)?;
    stage.alone().await?;
    count(world, 1).await?;
    assert!(both.works(), "the second key");
    world.told("acme", &["KeyIssued", "KeyRotated"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overlap_is_ended_by_the_next_rotation_or_by_declaring_none() -> Result {
    let mut key = rotating(json!({ "overlapSeconds": 600 }));
    let stage = Stage::new("rotate-twice", &key).await?;
    let (world, gate, first) = (&stage.world, &stage.gate, &stage.first);
    raise(world, 1)?;
    let second = current(&successor(world, first).await?)?;
    raise(world, 2)?;
    let rotated = successor(world, &second).await?;
    assert_eq!(rotated["status"]["previous"]["hash"], second.as_str());
    count(world, 2).await?;
    assert!(!gate.accepts(first)? && gate.accepts(&second)?);
    key["spec"]["rotation"] = json!({ "revision": 2, "overlapSeconds": 0 });
    world.apply(&key)?;
    stage.alone().await?;
    let third = current(&rotated)?;
    assert!(!gate.accepts(&second)? && gate.accepts(&third)?);
    raise(world, 3)?;
    let cut = successor(world, &third).await?;
    assert!(cut["status"]["previous"].is_null(), "{cut}");
    assert!(!gate.accepts(&third)? && gate.accepts(&current(&cut)?)?);
    assert_eq!(text_hash(world)?, current(&cut)?);
    count(world, 1).await?;
    let rotated = ["KeyRotated"; 3];
    world
        .told("acme", &[&["KeyIssued"], &rotated[..]].concat())
        .await?;
    let notes =
        "--output=jsonpath={range .items[?(@.reason==\"KeyRotated\")]}{.message}{\"\\n\"}{end}";
    let notes = world.kubectl(&["get", "events", notes])?;
    let notes: BTreeSet<&str> = notes.lines().collect();
    assert_eq!(notes.len(), 3, "each in its own words: {notes:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_36_a_key_is_replaced_when_its_period_is_over_on_redis_clock_though_nothing_happens()
-> Result {
    let key = rotating(json!({ "periodSeconds": 3600, "overlapSeconds": 600 }));
    let stage = Stage::new("rotate-period", &key).await?;
    let (world, first) = (&stage.world, &stage.first);
    let before = world.get("apikey/acme")?["status"].clone();
    let issued = before["current"]["issuedTime"].as_str();
    let issued = Timestamp::parse(issued.context("a time")?)?;
    let due = before["nextRotationTime"]
        .as_str()
        .context("a time")?
        .to_owned();
    let age = (Timestamp::parse(&due)?.as_millis() - issued.as_millis()) / 1000;
    assert!((3240..=3600).contains(&age), "{age} s");
    let client = Client::start(&stage.gate, first);
    // The pass that is asked for sets itself the time of the next one, some seconds later.
    stage.pass_at(age - 10)?;
    let second = current(&successor(world, first).await?)?;
    assert_eq!(text_hash(world)?, second);
    assert!(client.works(), "the first key");
    stage.pass_at(age + 620)?;
    let later = stage.alone().await?;
    assert_eq!(current(&later)?, second, "not rotated again");
    assert_ne!(later["status"]["nextRotationTime"], due);
    world.told("acme", &["KeyIssued", "KeyRotated"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_hash_works_beside_the_old_one_until_the_overlap_ends_or_is_ended() -> Result {
    let with = |digit, overlap: u32| {
        let mut key = brought("acme", digit);
        key["spec"]["rotation"] = json!({ "overlapSeconds": overlap });
        key
    };
    let hash = |digit: char| digit.to_string().repeat(64);
    let stage = Stage::new("rotate-brought", &with('a', 600)).await?;
    let (world, gate) = (&stage.world, &stage.gate);
    let client = Client::start(gate, &hash('a'));
    world.apply(&with('b', 600))?;
    let rotated = successor(world, &hash('a')).await?;
    assert_eq!(rotated["status"]["previous"]["hash"], hash('a'));
    assert!(gate.accepts(&hash('b'))?);
    assert!(client.works(), "the first hash");
    stage.pass_at(601)?;
    stage.alone().await?;
    holds(world, &["bbbbbbbbbbbb Enterprise Active"]).await?;
    world.apply(&with('c', 600))?;
    successor(world, &hash('b')).await?;
    assert!(gate.accepts(&hash('b'))?);
    world.apply(&with('c', 0))?;
    stage.alone().await?;
    assert!(!gate.accepts(&hash('b'))? && gate.accepts(&hash('c'))?);
    world.apply(&with('d', 0))?;
    successor(world, &hash('c')).await?;
    assert!(!gate.accepts(&hash('c'))? && gate.accepts(&hash('d'))?);
    let rotated = ["KeyRotated"; 3];
    world
        .told("acme", &[&["KeyIssued"], &rotated[..]].concat())
        .await
}
