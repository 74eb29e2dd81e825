//! One test's stage: a world whose operator reaches the API server and Redis through an interceptor,
//! a gate that follows the directory with clients that ask it, and all that the invariants need.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use water_domain::Timestamp;
use water_harness::{
    Interceptor, Port, Process, Program, Protocol, Proxy, Redis, scratch_directory, wait_until,
    wait_until_every,
};

use crate::clients::Clients;
use crate::facts::Facts;
use crate::gate::{GRACE, Gate};
use crate::invariants::{self, Order, Point, Releases, Violation};
use crate::objects::Objects;
use crate::rights::ACCOUNT;
use crate::world::{PATIENCE, World, api};

/// Whether `WATER_FAULTS` asks for what takes long, too.
pub fn is_all_asked_for() -> bool {
    env::var("WATER_FAULTS").is_ok_and(|value| value == "all")
}

/// Between two looks at everything, which read the whole directory.
const LOOK_AT_ALL: Duration = Duration::from_millis(200);
/// At least between two looks at where the directory stands.
const LOOK: Duration = Duration::from_millis(10);
/// Between two looks while the operator sends no command: one may have been held up on its way.
const LOOK_IN_SILENCE: Duration = Duration::from_millis(250);

pub struct Stage {
    pub world: World,
    pub objects: Objects,
    pub redis: Redis,
    /// The networks between the operator and Redis, and between it and the API server.
    pub to_redis: Proxy,
    pub to_api_server: Proxy,
    pub interceptor: Interceptor,
    pub gate: Arc<Gate>,
    pub clients: Clients,
    pub operator: Arc<Process>,
    /// With their admin ports, which stay theirs when they are killed and start again.
    standbys: Mutex<Vec<(Arc<Process>, Port)>>,
    /// Where the operator reaches the API server.
    pub api_server: SocketAddr,
    admin: Port,
    pub releases: Releases,
    order: Arc<Mutex<Order>>,
    looking: JoinHandle<()>,
}

impl Stage {
    /// Everything runs, and there is no key yet.
    pub async fn new(namespace: &str) -> Result<Self> {
        let redis = Redis::start().await?;
        let world = World::with_redis(namespace, &redis.url()).await?;
        Self::of(world, redis, |operator| operator).await
    }

    /// The same in a world on that Redis, with an operator that `run` may change.
    pub async fn of(
        world: World,
        redis: Redis,
        run: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        let to_redis = Proxy::before(redis.address()).await?;
        let mut interceptor = Interceptor::default();
        let store = interceptor.before_redis(to_redis.address()).await?;
        world.apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "redis" },
            "stringData": { "operator-url": format!("redis://{store}/") },
        }))?;
        world.apply(&api())?;
        let admin = Port::reserve()?;
        let to_api_server = Proxy::before(world.cluster.address()).await?;
        let authority = world.cluster.authority_pem();
        let api_server = interceptor
            .before_api_server(to_api_server.address(), authority)
            .await?;
        let operator = Arc::new(run(operator(&world, "operator-0", api_server, &admin)?).start()?);
        let synced = world
            .condition(
                "waterdataapi/water-data",
                "DirectorySynced",
                "True/Published",
            )
            .await;
        synced.with_context(|| operator.log_end())?;
        let gate = Arc::new(Gate::start(&world, "gate-0", GRACE).await?);
        let releases = Releases::at(&gate);
        let witness = releases.clone();
        let commanded = Arc::<Notify>::default();
        let heard = Arc::clone(&commanded);
        interceptor.show(move |protocol, request| {
            if protocol == Protocol::Redis {
                heard.notify_one();
            }
            witness.see(protocol, request);
        });
        let order = Arc::<Mutex<Order>>::default();
        let looking = tokio::spawn(look(world.directory()?, Arc::clone(&order), commanded));
        Ok(Self {
            objects: Objects::of(&world).await?,
            clients: Clients::of(&gate),
            world,
            redis,
            to_redis,
            to_api_server,
            interceptor,
            gate,
            operator,
            standbys: Mutex::default(),
            api_server,
            admin,
            releases,
            order,
            looking,
        })
    }

    /// Another operator, behind the same interceptor, that stands by.
    pub fn standby(&self) -> Result<Arc<Process>> {
        let admin = Port::reserve()?;
        let operator = operator(&self.world, "operator-1", self.api_server, &admin)?;
        let operator = Arc::new(operator.start()?);
        self.search(Arc::clone(&operator), admin);
        Ok(operator)
    }

    /// From here on texts are searched in what this one shows, too.
    pub fn search(&self, operator: Arc<Process>, admin: Port) {
        self.standbys().push((operator, admin));
    }

    fn standbys(&self) -> MutexGuard<'_, Vec<(Arc<Process>, Port)>> {
        self.standbys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a condition; an error shows the end of the operator's log.
    pub async fn wait<T>(
        &self,
        what: &str,
        within: Duration,
        condition: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let waited = wait_until(what, within, condition).await;
        waited.with_context(|| self.operator.log_end())
    }

    /// The same for a condition that looks at everything.
    pub async fn wait_for_all<T>(
        &self,
        what: &str,
        within: Duration,
        condition: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let waited = wait_until_every(LOOK_AT_ALL, what, within, condition).await;
        waited.with_context(|| self.operator.log_end())
    }

    /// Redis' time.
    pub async fn now(&self) -> Result<Timestamp> {
        // *2, the length of the seconds, the seconds …
        let reply = self.redis.command(&["TIME"]).await?;
        let seconds = reply.lines().nth(2).context("no seconds")?;
        let seconds: i64 = seconds.trim_end().parse()?;
        Timestamp::from_millis(seconds * 1000).context("a time")
    }

    /// That long after Redis' time.
    pub async fn in_seconds(&self, seconds: u64) -> Result<Timestamp> {
        Ok(self.now().await?.plus(Duration::from_secs(seconds)))
    }

    /// Where the directory stands.
    pub async fn point(&self) -> Result<Point> {
        let seen = self.world.directory()?.observe().await?;
        let meta = seen.verified().context("the directory is not whole")?;
        Ok(Point::from(meta))
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

    /// The invariants that can be looked at in a moment, when nothing is under way.
    pub async fn violations(&self) -> Result<Vec<Violation>> {
        // What changes is looked at again, and so is a Redis that a busy machine made slow.
        let look = async || Facts::gather(&self.world, &self.objects).await;
        let facts = self.wait("a still world", PATIENCE, look).await?;
        let mut found = invariants::declared(&facts, self.now().await?);
        found.extend(self.releases.violations());
        found.extend(self.order().violations());
        found.extend(invariants::accounts(&self.clients.tallies()));
        found.extend(self.shown_texts().await?);
        Ok(found)
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error that names every violation, in metrics too: the operator has to run.
    pub async fn holds(&self) -> Result<()> {
        ok(self.violations().await?)?;
        ok(self.shown_metrics().await?)
    }

    /// An error that names every text that is shown, though a change is under way.
    pub async fn shows_no_text(&self) -> Result<()> {
        ok(self.shown_texts().await?)
    }

    /// The same, and a restart where all is asked for: it takes most of a minute.
    pub async fn holds_for_good(&self) -> Result<()> {
        self.holds().await?;
        if is_all_asked_for() {
            ok(self.restart_writes().await?)?;
        }
        Ok(())
    }

    /// 5, in what outlives an operator. It costs a third of the look at the others.
    async fn shown_texts(&self) -> Result<Vec<Violation>> {
        let logs: Vec<String> = self.standbys().iter().map(|(one, _)| one.log()).collect();
        let logs = self.operator.log() + &logs.concat();
        invariants::texts(&self.world, &self.redis, &logs).await
    }

    /// 5, in the metrics of the operator and of those beside it that run.
    pub async fn shown_metrics(&self) -> Result<Vec<Violation>> {
        let mut admins = vec![self.admin.address()];
        for (standby, admin) in self.standbys().iter() {
            if standby.exit_status()?.is_none() {
                admins.push(admin.address());
            }
        }
        invariants::metrics(&admins).await
    }

    /// 6
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

    /// Judges what the operator has written since it was started again, when its second pass over
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
        self.looking.abort();
    }
}

fn has_passed_twice(requests: &[String]) -> Result<()> {
    let looks = requests.iter().filter(|request| is_look(request));
    ensure!(looks.count() >= 2, "{requests:?}");
    Ok(())
}

/// Each pass over a WaterDataApi lists its Ingresses once.
fn is_look(request: &str) -> bool {
    request.starts_with("GET ")
        && request.contains("/ingresses")
        && request.contains("instance")
        && !request.contains("watch=")
}

fn ok(found: Vec<Violation>) -> Result<()> {
    let found: Vec<String> = found.iter().map(Violation::to_string).collect();
    if !found.is_empty() {
        bail!("{}", found.join("\n"));
    }
    Ok(())
}

/// An operator with its own rights, behind the interceptor.
fn operator(world: &World, pod: &str, api_server: SocketAddr, admin: &Port) -> Result<Program> {
    let kubeconfig = world.cluster.kubeconfig_of(&world.namespace, ACCOUNT)?;
    let direct = format!("https://{}", world.cluster.address());
    let file = scratch_directory("operator")?.join("kubeconfig");
    fs::write(
        &file,
        kubeconfig.replace(&direct, &format!("http://{api_server}")),
    )?;
    Ok(Program::new(env!("CARGO_BIN_EXE_water-operator"))
        .arg("run")
        .env("KUBECONFIG", file)
        .env("WATER_POD_NAME", pod)
        .env("WATER_POD_NAMESPACE", &world.namespace)
        .env("WATER_ADMIN_ADDRESS", admin.address().to_string()))
}

/// A directory that is not whole, or whose server has gone back in time, says nothing.
/// Only the operator's commands change one.
async fn look(
    directory: water_keystore::Directory,
    order: Arc<Mutex<Order>>,
    commanded: Arc<Notify>,
) {
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
