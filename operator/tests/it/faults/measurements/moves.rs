//! Redis is moved, and the operator is killed at each of its writes: to the API server, or by a script in a Redis.
//! Then the move goes on, or the Secret names the first Redis again. A key whose deletion ended meanwhile is dead in
//! the Redis that is used in the end, which may have held it all the time, and no other key is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use water_domain::KeyHash;
use water_harness::{Fault, Interceptor, Moment, Process, Protocol, Redis};
use water_kit::is_all_asked_for;
use water_kit::operator::invariants;
use water_kit::operator::objects::{current, is_missing};
use water_kit::operator::world::{OBJECT, PATIENCE, World, api, key};

/// Longest time from the restart to the end of the deletion and of the move.
const CONVERGED_WITHIN: Duration = Duration::from_secs(10);
/// Number of writes that no move has: one that never ends would be killed for ever.
const MOST: usize = 60;

/// Courses of a move after the kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Course {
    /// The move goes on.
    There,
    /// The Secret names the first Redis again.
    Back,
    /// Like `Back`, and no status had named that Redis.
    BackUnnamed,
}

use Course::{Back, BackUnnamed, There};

/// Courses after a kill at the write of this number: with `WATER_FAULTS=all` every one.
fn courses(number: usize) -> &'static [Course] {
    const ALL: [Course; 3] = [BackUnnamed, There, Back];
    match number % 2 {
        _ if is_all_asked_for() => &ALL,
        1 => &ALL[..2],
        _ => &ALL[..1],
    }
}

/// Counts the operator's writes, and kills it at one.
#[derive(Default)]
struct Killer {
    writes: Vec<String>,
    /// The write and the operator, until it is killed.
    order: Option<(usize, Arc<Process>)>,
}

impl Killer {
    /// A rebuild writes one part of the directory after another, which count as one write. The end of a pass over
    /// the WaterDataApi, which replaces the status, is not reached before the kill.
    fn judge(&mut self, protocol: Protocol, request: &[u8]) -> Option<(Moment, Fault)> {
        let summary = protocol.summary(request);
        let write = match protocol {
            Protocol::Redis if summary == "EVALSHA" => script(request),
            Protocol::Http if invariants::is_write(&summary) && !summary.contains("/events") => {
                summary
            }
            _ => return None,
        };
        if self.order.is_some() && write.starts_with("PUT ") && write.contains("/waterdataapis/") {
            return Some((Moment::BeforeDelivery, Fault::Hang));
        }
        if self.writes.last() == Some(&write) {
            return None;
        }
        self.writes.push(write);
        let is_due = |(number, _): &mut (usize, _)| *number == self.writes.len();
        let (_, operator) = self.order.take_if(is_due)?;
        Some((Moment::AfterDelivery, Fault::Kill(operator)))
    }
}

/// The name of the script that a command runs.
fn script(command: &[u8]) -> String {
    // *<words>, $<length>, EVALSHA, $<length>, <name>
    let name = command.split(|byte| *byte == b'\n').nth(4);
    let name = String::from_utf8_lossy(name.unwrap_or_default());
    name.trim_end().to_owned()
}

/// An operator with two Redis, of which one is used.
struct Moves {
    world: World,
    stores: [Redis; 2],
    /// URLs by which the operator reaches them.
    urls: [String; 2],
    /// Names of them in the status.
    names: [String; 2],
    at: usize,
    kept: KeyHash,
    operator: Arc<Process>,
    killer: Arc<Mutex<Killer>>,
    _interceptor: Interceptor,
}

impl Moves {
    /// Starts a world in which both Redis have been used, and the first one is.
    async fn start(namespace: &str) -> Result<Self> {
        let stores = [Redis::start().await?, Redis::start().await?];
        let mut world = World::with_redis(namespace, &stores[0].url()).await?;
        let mut interceptor = Interceptor::default();
        let (killer, mut urls) = (Arc::<Mutex<Killer>>::default(), <[String; 2]>::default());
        for (store, url) in stores.iter().zip(&mut urls) {
            let address = interceptor.before_redis(store.address()).await?;
            *url = format!("redis://{address}/");
        }
        let authority = world.cluster.authority_pem();
        let api_server = world.cluster.address();
        let api_server = interceptor.before_api_server(api_server, authority).await?;
        world.reach_api_server_at(api_server)?;
        let judge = Arc::clone(&killer);
        interceptor.judge(move |protocol, request| locked(&judge).judge(protocol, request));
        world.apply(&secret(&urls[0]))?;
        world.apply(&api())?;
        let operator = world.operator("operator-0")?;
        let kept = world.in_force(&key("kept")).await?;
        let mut moves = Self {
            kept: current(&serde_json::from_value(kept)?)?,
            names: Default::default(),
            at: 0,
            world,
            stores,
            urls,
            operator,
            killer,
            _interceptor: interceptor,
        };
        for at in [0, 1, 0] {
            let before = moves.names[1 - at].clone();
            moves.point(at)?;
            let named = async || {
                let named = moves.named()?;
                ensure!(!named.is_empty() && named != before, "{named:?} is named");
                Ok(named)
            };
            let name = moves.world.wait("another Redis", PATIENCE, named).await?;
            moves.names[at] = name;
        }
        Ok(moves)
    }

    /// Names this Redis in the Secret.
    fn point(&mut self, at: usize) -> Result<()> {
        self.at = at;
        self.world.redis_url = self.stores[at].url();
        self.world.apply(&secret(&self.urls[at]))
    }

    /// The Redis that the status names.
    fn named(&self) -> Result<String> {
        let api = self.world.get(OBJECT)?;
        let named = api["status"]["directoryStore"].as_str();
        Ok(named.unwrap_or_default().to_owned())
    }

    /// Moves Redis while a key is deleted, under an operator that is killed at the write of this number. Returns the
    /// time that the next one took, or nothing if there were fewer writes.
    async fn killed_at(&mut self, number: usize, course: Course) -> Result<Option<Duration>> {
        let (from, name) = (self.at, format!("dead-{number}-{course:?}").to_lowercase());
        self.world.in_force(&brought(&name)).await?;
        self.operator.kill()?;
        let object = format!("apikey/{name}");
        self.world.objects.delete(&object)?;
        if course == BackUnnamed {
            let nothing = json!({ "directoryStore": null, "nextDirectoryStore": null });
            let status = json!({ "status": nothing });
            self.world
                .patch(OBJECT, &status, &["--subresource=status"])?;
        }
        self.point(1 - from)?;
        let order = Some((number, Arc::clone(&self.operator)));
        *locked(&self.killer) = Killer {
            writes: Vec::new(),
            order,
        };
        self.operator.start_again()?;
        let over = async || match self.operator.exit_status()? {
            Some(_) => Ok(()),
            None => self.is_over(&object).await,
        };
        self.world
            .wait("the kill, or the end", PATIENCE, over)
            .await?;
        let killer = std::mem::take(&mut *locked(&self.killer));
        if killer.order.is_some() {
            println!("a move has {} writes", killer.writes.len());
            return Ok(None);
        }
        self.operator.ended(PATIENCE).await?;
        if course != There {
            self.point(from)?;
        }
        let restarted = Instant::now();
        self.operator.start_again()?;
        let over = async || self.is_over(&object).await;
        let over = self.world.wait("the end", CONVERGED_WITHIN, over).await;
        over.with_context(|| format!("{name}: killed after {:?}", killer.writes))?;
        Ok(Some(restarted.elapsed()))
    }

    /// Checks that the ApiKey is gone, and that the Redis that is used is named and holds the other key alone.
    async fn is_over(&self, object: &str) -> Result<()> {
        match self.world.get(object) {
            Err(error) if is_missing(&error) => {}
            found => bail!("still there: {:?}", found?["status"]),
        }
        let named = self.named()?;
        ensure!(named == self.names[self.at], "{named:?} is named");
        let directory = self.world.directory()?;
        let seen = directory.observe().await?;
        ensure!(seen.verified().is_some(), "not whole: {seen:?}");
        let stored = directory.stored().await?;
        let stored: Vec<&KeyHash> = stored.keys().collect();
        ensure!(
            stored == [&self.kept],
            "{stored:?} instead of {}",
            self.kept
        );
        Ok(())
    }
}

fn locked(killer: &Mutex<Killer>) -> MutexGuard<'_, Killer> {
    killer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The Secret through which operator and gates find Redis.
fn secret(url: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "redis" },
        "stringData": { "operator-url": url, "gate-url": url },
    })
}

/// An ApiKey with a separate hash.
fn brought(name: &str) -> Value {
    let mut key = key(name);
    let hash = hex::encode(Sha256::digest(name));
    key["spec"]["material"] = json!({ "hash": { "sha256": hash } });
    key
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_03_a_key_that_is_deleted_during_a_move_of_redis_killed_at_any_write_stays_dead()
-> Result<()> {
    let mut moves = Moves::start("kills-move").await?;
    let (mut kills, mut slowest) = (0, Duration::ZERO);
    for number in 1..MOST {
        for course in courses(number) {
            let Some(took) = moves.killed_at(number, *course).await? else {
                ensure!(kills > 0, "no kill");
                println!("killed {kills} times");
                println!("converged after {:.3} s", slowest.as_secs_f64());
                return Ok(());
            };
            (kills, slowest) = (kills + 1, slowest.max(took));
        }
    }
    bail!("a move goes on for more than {MOST} writes")
}
