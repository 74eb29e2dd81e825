//! A world whose operators reach the API server and Redis through an interceptor, with a gate that follows
//! the directory, clients that ask it, and all that the invariants need.

use std::borrow::Borrow;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use water_domain::{KeyHash, Timestamp};
use water_harness::{ControlPlane, Interceptor, Process, Protocol, Proxy, Redis, wait_until_every};
use water_keystore::Directory;
use water_resources::ApiKey;

use super::clients::{Clients, Expected};
use super::facts::Facts;
use super::gate::{GRACE, Gate};
use super::invariants::{self, Order, Point, Releases, Violation};
use super::objects;
use super::samples::{api, brought, key};
use super::world::{PATIENCE, World};
use crate::is_all_asked_for;

/// Pause between two checks of everything, which read the whole directory.
const LOOK_AT_ALL: Duration = Duration::from_millis(200);
/// Shortest pause between two reads of the directory's numbers.
const LOOK: Duration = Duration::from_millis(10);
/// Pause between two reads while the operator sends no command: one may have been held up on its way.
const LOOK_IN_SILENCE: Duration = Duration::from_millis(250);

/// Prints the time since then, for the report of faults.
pub fn converged(since: Instant) {
    println!("converged after {:.3} s", since.elapsed().as_secs_f64());
}

/// Stage of one test.
pub struct Stage {
    world: World,
    /// The directory's server.
    pub redis: Redis,
    /// The network between the operators and Redis.
    pub to_redis: Proxy,
    /// The network between the operators and the API server.
    pub to_api_server: Proxy,
    /// The network between the gate and Redis.
    pub to_gate: Proxy,
    /// Sees the requests of all operators.
    pub interceptor: Interceptor,
    /// Address at which operators reach the API server, over plain HTTP.
    pub api_server: SocketAddr,
    /// Follows the directory.
    pub gate: Arc<Gate>,
    /// Clients that ask the gate.
    pub clients: Clients,
    /// The first operator.
    pub operator: Arc<Process>,
    /// Releases of ApiKeys so far.
    pub releases: Releases,
    /// Notice before each write of an operator to the API server.
    pub written: Arc<Notify>,
    order: Arc<Mutex<Order>>,
    following: JoinHandle<()>,
}

impl Deref for Stage {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Borrow<World> for Stage {
    fn borrow(&self) -> &World {
        &self.world
    }
}

impl Stage {
    /// Makes a stage in a namespace of the shared API server in which everything runs, and no key is yet.
    pub async fn new(namespace: &str) -> Result<Self> {
        Self::with_redis(namespace, Redis::start().await?).await
    }

    /// Makes a stage on that Redis.
    pub async fn with_redis(namespace: &str, redis: Redis) -> Result<Self> {
        let world = World::with_redis(namespace, &redis.url()).await?;
        Self::of_world(world, redis).await
    }

    /// Makes a stage at that API server, which the test may kill.
    pub async fn on(cluster: ControlPlane, namespace: &str) -> Result<Self> {
        let redis = Redis::start().await?;
        let world = World::on(cluster, namespace, &redis.url()).await?;
        Self::of_world(world, redis).await
    }

    /// Makes a stage of a world on that Redis.
    pub async fn of_world(mut world: World, redis: Redis) -> Result<Self> {
        let to_redis = Proxy::before(redis.address()).await?;
        let to_gate = Proxy::before(redis.address()).await?;
        let to_api_server = Proxy::before(world.cluster.address()).await?;
        let mut interceptor = Interceptor::default();
        let store = interceptor.before_redis(to_redis.address()).await?;
        let authority = world.cluster.authority_pem();
        let api_server = interceptor
            .before_api_server(to_api_server.address(), authority)
            .await?;
        world.apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "redis" },
            "stringData": { "operator-url": format!("redis://{store}/") },
        }))?;
        world.apply(&api())?;
        world.reach_api_server_at(api_server)?;
        let operator = world.operator("operator-0")?;
        world.synced().await?;
        let through = format!("redis://{}/", to_gate.address());
        let gate = Arc::new(Gate::start_at(&through, &world, "gate-0", GRACE).await?);
        let releases = Releases::at(&gate);
        let (commanded, written) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let (witness, heard) = (releases.clone(), [&commanded, &written].map(Arc::clone));
        interceptor.show(move |protocol, request| {
            match protocol {
                Protocol::Redis => heard[0].notify_one(),
                Protocol::Http if !request.starts_with(b"GET ") => heard[1].notify_one(),
                Protocol::Http => {}
            }
            witness.see(protocol, request);
        });
        let order = Arc::<Mutex<Order>>::default();
        let directory = world.directory()?;
        let following = follow(Directory::clone(&directory), Arc::clone(&order), commanded);
        Ok(Self {
            clients: Clients::at(&gate),
            world,
            redis,
            to_redis,
            to_api_server,
            to_gate,
            interceptor,
            api_server,
            gate,
            operator,
            releases,
            written,
            order,
            following: tokio::spawn(following),
        })
    }

    /// Waits for a condition that reads everything.
    pub async fn wait_for_all<T>(
        &self,
        what: &str,
        within: Duration,
        condition: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let waited = wait_until_every(LOOK_AT_ALL, what, within, condition).await;
        waited.with_context(|| self.operator.log_end())
    }

    /// Waits until a condition of the present spec of an ApiKey reads `<status>/<reason>`.
    pub async fn key_is(&self, name: &str, aspect: &str, wanted: &str) -> Result<ApiKey> {
        let what = format!("{name} to be {aspect}={wanted}");
        self.wait(&what, PATIENCE, async || {
            let key = self.objects.key(name)?.context("no ApiKey")?;
            let shown = objects::shown(&key, aspect);
            ensure!(shown == wanted, "{shown}: {:?}", key.status);
            Ok(key)
        })
        .await
    }

    /// Creates an ApiKey, and waits until clients must be accepted with its key.
    pub async fn issue(&self, declared: &Value) -> Result<KeyHash> {
        self.objects.create(declared)?;
        let name = declared["metadata"]["name"].as_str().context("a name")?;
        let key = self.key_is(name, "Ready", "True/Active").await?;
        let hash = objects::current(&key)?;
        self.clients.expect(hash, Expected::Accepted);
        Ok(hash)
    }

    /// Issues a generated key.
    pub async fn generate(&self, name: &str) -> Result<KeyHash> {
        self.issue(&key(name)).await
    }

    /// Issues a key with a hash of that digit.
    pub async fn bring(&self, name: &str, digit: char) -> Result<KeyHash> {
        self.issue(&brought(name, digit)).await
    }

    /// Deletes an ApiKey with that hash, and waits until it is gone; from then on the key is dead.
    pub async fn revoke(&self, name: &str, hash: KeyHash) -> Result<()> {
        self.clients.expect(hash, Expected::Either);
        let object = format!("apikey/{name}");
        self.objects.delete(&object)?;
        self.gone(&object).await?;
        self.clients.expect(hash, Expected::Refused);
        Ok(())
    }

    /// Returns Redis' time.
    pub async fn now(&self) -> Result<Timestamp> {
        // *2, the length of the seconds, the seconds …
        let reply = self.redis.command(&["TIME"]).await?;
        let seconds = reply.lines().nth(2).context("no seconds")?;
        let seconds: i64 = seconds.trim_end().parse()?;
        Timestamp::from_millis(seconds * 1000).context("a time")
    }

    /// Returns the time that long after Redis' time.
    pub async fn in_seconds(&self, seconds: u64) -> Result<Timestamp> {
        Ok(self.now().await?.plus(Duration::from_secs(seconds)))
    }

    /// Returns the numbers of a whole directory.
    pub async fn point(&self) -> Result<Point> {
        let seen = self.directory()?.observe().await?;
        let meta = seen.verified().context("the directory is not whole")?;
        Ok(Point::from(meta))
    }

    /// Waits until invariant 7 has seen the numbers as they are: only a decrease from there is one for it.
    pub async fn followed(&self) -> Result<()> {
        let seen = async || {
            let (now, last) = (self.point().await?, self.order().last);
            ensure!(last == Some(now), "{now:?}, the last look showed {last:?}");
            Ok(())
        };
        self.wait("a look at the numbers", PATIENCE, seen).await
    }

    /// Waits until the directory is whole under a later generation.
    pub async fn rebuilt(&self, earlier: u64) -> Result<()> {
        let whole = async || {
            let now = self.point().await?.generation;
            ensure!(now > earlier, "still generation {now}");
            Ok(())
        };
        self.wait("the rebuild", PATIENCE, whole).await
    }

    /// Returns the violations of the invariants that can be judged in a moment, when nothing is under way.
    pub async fn violations(&self) -> Result<Vec<Violation>> {
        // What changes is read again, and so is a Redis that a busy machine made slow.
        let gather = async || Facts::gather(self).await;
        let facts = self.wait("a still world", PATIENCE, gather).await?;
        let mut found = invariants::declared(&facts, self.now().await?);
        found.extend(self.releases.violations());
        found.extend(self.order().violations.clone());
        found.extend(invariants::accounts(&self.clients.tallies()));
        found.extend(invariants::texts(self, &self.redis).await?);
        Ok(found)
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is violated, and `is_as_declared` holds. A violation that nothing repairs ends the
    /// wait.
    pub async fn rests(
        &self,
        within: Duration,
        violations: impl AsyncFn() -> Result<Vec<Violation>>,
        is_as_declared: impl AsyncFn() -> Result<()>,
    ) -> Result<()> {
        let rests = async || {
            let found = violations().await?;
            let lasting = found.iter().find(|violation| violation.invariant > 3);
            if let Some(lasting) = lasting {
                return Ok(Some(lasting.clone()));
            }
            ensure!(found.is_empty(), "{found:?}");
            is_as_declared().await?;
            Ok(None)
        };
        match self.wait_for_all("rest", within, rests).await? {
            Some(violation) => bail!("{violation}"),
            None => Ok(()),
        }
    }

    /// Fails with every violation, in metrics too: an operator has to run.
    pub async fn holds(&self) -> Result<()> {
        ok(self.violations().await?)?;
        ok(invariants::metrics(self).await?)
    }

    /// Fails with every text that is shown, though a change is under way.
    pub async fn shows_no_text(&self) -> Result<()> {
        ok(invariants::texts(self, &self.redis).await?)
    }

    /// Checks like [`Stage::holds`] that an operator never ended, and a restart where all is asked for: it
    /// takes most of a minute.
    pub async fn holds_for_good(&self) -> Result<()> {
        let has_ended = self.operator.exit_status()?.is_some();
        ensure!(!has_ended, "{}", self.operator.log_end());
        self.holds().await?;
        if is_all_asked_for() {
            ok(self.restart_writes().await?)?;
        }
        Ok(())
    }

    /// Restarts the operator and judges its writes by invariant 6.
    pub async fn restart_writes(&self) -> Result<Vec<Violation>> {
        self.rest().await?;
        let before = self.point().await?;
        self.operator.stop(PATIENCE).await?;
        self.start_again()?;
        self.writes_since(before).await
    }

    /// Waits for two passes over the WaterDataApi between which nothing is written.
    async fn rest(&self) -> Result<()> {
        self.interceptor.recall();
        let rests = async || {
            let requests = self.interceptor.requests();
            if let Some(write) = requests.iter().find(|one| invariants::is_write(one)) {
                self.interceptor.recall();
                bail!("{write}");
            }
            has_passed_twice(&requests)
        };
        self.wait("rest", 2 * PATIENCE, rests).await
    }

    /// Starts an operator that was stopped.
    pub fn start_again(&self) -> Result<()> {
        self.interceptor.recall();
        self.operator.start_again()
    }

    /// Judges the writes of the operator since it was started again, when its second pass over
    /// the WaterDataApi has begun.
    pub async fn writes_since(&self, before: Point) -> Result<Vec<Violation>> {
        let passed = async || has_passed_twice(&self.interceptor.requests());
        self.wait("two passes", PATIENCE, passed).await?;
        let requests = self.interceptor.requests();
        Ok(invariants::restart(&requests, before, self.point().await?))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.following.abort();
    }
}

fn has_passed_twice(requests: &[String]) -> Result<()> {
    let passes = requests.iter().filter(|request| is_pass(request));
    ensure!(passes.count() >= 2, "{requests:?}");
    Ok(())
}

/// Whether a request belongs to a pass over a WaterDataApi, which lists its Ingresses once.
fn is_pass(request: &str) -> bool {
    request.starts_with("GET ")
        && request.contains("/ingresses")
        && request.contains("instance")
        && !request.contains("watch=")
}

fn ok(found: Vec<Violation>) -> Result<()> {
    let found: Vec<String> = found.iter().map(Violation::to_string).collect();
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// Notes the numbers of a directory after each command. One that is not whole, or whose server has gone
/// back in time, says nothing. Only the operator's commands change one.
async fn follow(directory: Directory, order: Arc<Mutex<Order>>, commanded: Arc<Notify>) {
    loop {
        if let Ok(seen) = directory.observe().await
            && let Some(meta) = seen.verified()
        {
            let mut order = order.lock().unwrap_or_else(PoisonError::into_inner);
            order.see(Point::from(meta));
        }
        // It is on its way yet.
        let _ = timeout(LOOK_IN_SILENCE, commanded.notified()).await;
        sleep(LOOK).await;
    }
}
