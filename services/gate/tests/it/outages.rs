//! Redis failing in every way under load: a valid key keeps working, no other client gets in, and limits are exact
//! again once Redis is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use water_harness::{HttpClient, Network, Proxy, Redis, RedisCluster, wait_until};
use water_keystore::Reason;
use water_kit::gate::Overdue;
use water_kit::{Gate, Key, SOON, equal, exactly};

use crate::deadline::{decided, timed};
use crate::whole::{is, problem, remaining};

const TARGET: &str = "/api/v1/stress";
/// Number of accounts, used in turn: enough to keep each far from its limit.
const ACCOUNTS: usize = 60;
/// Number of connections, each with its own part of the keys.
const CLIENTS: usize = 6;
/// Interval of the requests of one connection: 60 requests/s in all, 60 a minute of each account.
const PACE: Duration = Duration::from_millis(100);
/// Number of answers to valid keys in each state of Redis: those of a second.
const ANSWERS: usize = 60;
/// Most answers to valid keys that a machine which stands still may make too late: one of each connection, three times.
const OVERDUE: usize = 3 * CLIENTS;
const EXACT: &str = r#"water_gate_limits_mode{mode="exact"} 1"#;

/// Steady requests: valid keys must get 200 and strangers nothing.
struct Load {
    answered: Arc<AtomicUsize>,
    overdue: Arc<AtomicUsize>,
    stop: watch::Sender<bool>,
    clients: JoinSet<()>,
}

impl Load {
    async fn start(gate: &Gate, keys: &[Key]) -> Self {
        let (stop, stopped) = watch::channel(false);
        let answered = Arc::<AtomicUsize>::default();
        let overdue = Arc::<AtomicUsize>::default();
        let mut clients = JoinSet::new();
        for part in keys.chunks(keys.len().div_ceil(CLIENTS)) {
            let texts = part.iter().map(|key| key.text.clone()).collect();
            let (answered, overdue) = (Arc::clone(&answered), Arc::clone(&overdue));
            let client = gate.connect().await;
            clients.spawn(send(client, texts, stopped.clone(), move |status| {
                let counter = match status {
                    Ok(status) => {
                        assert_eq!(status, 200);
                        &answered
                    }
                    Err(Overdue(_)) => &overdue,
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }));
        }
        let strangers = vec![Key::new().text, "x".repeat(40), Key::new().text];
        clients.spawn(send(gate.connect().await, strangers, stopped, |status| {
            let is_refused = status.is_ok_and(|status| [401, 429, 503].contains(&status));
            assert!(is_refused || status.is_err(), "{status:?}");
        }));
        Self {
            answered,
            overdue,
            stop,
            clients,
        }
    }

    /// Waits until [`ANSWERS`] more have arrived.
    async fn goes_on(&mut self) {
        let before = self.answered.load(Ordering::Relaxed);
        let come = async || {
            if let Some(ended) = self.clients.try_join_next() {
                ended.unwrap();
            }
            let more = self.answered.load(Ordering::Relaxed) - before;
            ensure!(more >= ANSWERS, "{more} have come");
            Ok(())
        };
        wait_until("answers", SOON, come).await.unwrap();
    }

    /// Ends the load, and checks that every answer was right, but for few that the machine was too slow for.
    async fn held(self) {
        self.stop.send_replace(true);
        self.clients.join_all().await;
        let overdue = self.overdue.load(Ordering::Relaxed);
        assert!(overdue <= OVERDUE, "{overdue} answers came too late");
    }
}

async fn send(
    mut client: HttpClient,
    keys: Vec<String>,
    stopped: watch::Receiver<bool>,
    check: impl Fn(Result<u16, Overdue>) + Send + 'static,
) {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for key in keys.iter().cycle() {
        pace.tick().await;
        if *stopped.borrow() {
            return;
        }
        let answer = async { client.get(TARGET, key).await.unwrap() };
        check(decided(&timed(answer).await));
    }
}

/// A gate with its own Redis and a proxy between them, under load.
struct World {
    redis: Redis,
    proxy: Proxy,
    gate: Gate,
    keys: Vec<Key>,
    load: Load,
}

impl World {
    async fn start() -> Self {
        let users = ["user gate on >secret ~* &* +@all"];
        let redis = Redis::start_with(&users).await.unwrap();
        let proxy = Proxy::before(redis.address()).await.unwrap();
        let url = redis.url_through(&proxy, "gate", "secret");
        let gate = Gate::builder().redis(&redis).set("WATER_REDIS_URL", url);
        let gate = gate.start().await;
        let keys: Vec<Key> = (0..ACCOUNTS).map(|_| Key::new()).collect();
        gate.publish_all(&keys).await;
        // No other request charges the first account while the counts are compared.
        let mut load = Load::start(&gate, &keys[1..]).await;
        load.goes_on().await;
        Self {
            redis,
            proxy,
            gate,
            keys,
            load,
        }
    }

    async fn command(&self, words: &[&str]) {
        self.redis.command(words).await.unwrap();
    }

    async fn republish(&self) {
        self.gate.republish(&self.keys).await;
    }

    /// Checks that valid keys work while Redis fails for this reason, which the gate logs and counts; after `end` Redis
    /// decides.
    async fn survives(
        &mut self,
        reason: Option<Reason>,
        begin: impl AsyncFnOnce(&Self),
        end: impl AsyncFnOnce(&Self),
    ) {
        let before = self.logged(reason);
        begin(self).await;
        self.load.goes_on().await;
        if let Some(reason) = reason {
            let logged = async || {
                let lines = self.logged(Some(reason)) - before;
                ensure!(lines > 0, "no line of {reason:?}");
                Ok(())
            };
            wait_until("a line in the log", SOON, logged).await.unwrap();
            let none = format!("failures_total{{reason=\"{}\"}} 0\n", reason.as_str());
            let metrics = self.gate.admin("/metrics").await.unwrap();
            assert!(!metrics.text().unwrap().contains(&none), "{metrics:?}");
        }
        for path in ["/live", "/ready"] {
            assert_eq!(self.gate.admin(path).await.unwrap().status, 200, "{path}");
        }
        end(self).await;
        self.is_exact().await;
        self.load.goes_on().await;
        self.logs_each_change_once();
    }

    /// Checks that no line of the log repeats the one before it. Redis may fail several times, each time for a reason;
    /// that it decides again has none.
    fn logs_each_change_once(&self) {
        let log = self.gate.process.log();
        let changes = log.lines().filter(|line| {
            line.contains("this gate's share of the limits does")
                || line.contains("Redis decides the limits again")
        });
        let reasons: Vec<_> = changes
            .map(|line| line.split(r#""reason":""#).nth(1)?.split('"').next())
            .collect();
        let repeats = reasons.windows(2).any(|two| two[0] == two[1]);
        assert!(!repeats, "{reasons:?}");
    }

    /// Counts the log's lines that report the beginning of a failure for this reason.
    fn logged(&self, reason: Option<Reason>) -> usize {
        let reason = reason.map_or("", Reason::as_str);
        let log = self.gate.process.log();
        let begins = |line: &&str| line.contains("this gate's share") && line.contains(reason);
        log.lines().filter(begins).count()
    }

    /// Checks that Redis decides: the client's headers are equal to the counts in Redis.
    async fn is_exact(&self) {
        self.gate.shows(&[EXACT]).await;
        let key = &self.keys[0];
        let list = self.gate.store.instance.minute(&key.record.account);
        // An answer for which Redis was late comes from the gate's share; the next one need not.
        let equal = async || {
            let answer = self.gate.get(TARGET, key).await;
            ensure!(answer.status == 200, "{answer:?}");
            let left = remaining(&answer);
            let counted = self.redis.command(&["LLEN", &list]).await?;
            let expected = format!(":{}\r\n", 120 - left);
            ensure!(counted == expected, "{left} are left, and {counted:?}");
            Ok(())
        };
        wait_until("equal counts", SOON, equal).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_22_23_a_redis_that_loses_its_data_fails_no_good_key() {
    let mut world = World::start().await;
    let revoked = world.gate.key().await;
    world.command(&["SAVE"]).await;
    world.gate.revoke(&revoked).await;
    let answer = async |world: &World| problem(&world.gate.get(TARGET, &revoked).await);
    let begin = async |world: &World| world.redis.kill().unwrap();
    let end = async |world: &World| {
        // With the old dump, in which the key is still valid.
        world.redis.start_again().await.unwrap();
        world
            .gate
            .shows(&["water_gate_directory_current 0.0"])
            .await;
        assert_eq!(answer(world).await, is(503, "dependency_unavailable"));
        world.republish().await;
        assert_eq!(answer(world).await, is(401, "invalid_key"));
    };
    world.survives(Some(Reason::Down), begin, end).await;

    let begin = async |world: &World| world.command(&["FLUSHALL"]).await;
    let end = async |world: &World| world.republish().await;
    world.survives(None, begin, end).await;
    world.load.held().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_24_25_27_a_redis_that_refuses_fails_no_good_key() {
    let mut world = World::start().await;
    let begin = async |world: &World| world.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let end = async |world: &World| {
        world.command(&["REPLICAOF", "NO", "ONE"]).await;
        world.republish().await;
    };
    world.survives(Some(Reason::ReadOnly), begin, end).await;

    let begin = async |world: &World| world.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let end = async |world: &World| world.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    world.survives(Some(Reason::OutOfMemory), begin, end).await;

    let begin = async |world: &World| {
        let changed = ["ACL", "SETUSER", "gate", "resetpass", ">changed"];
        world.command(&changed).await;
        world.command(&["CLIENT", "KILL", "USER", "gate"]).await;
    };
    let end = async |world: &World| world.command(&["ACL", "SETUSER", "gate", ">secret"]).await;
    let reason = Reason::WrongPassword;
    world.survives(Some(reason), begin, end).await;
    world.load.held().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_26_a_redis_that_is_slow_silent_or_half_open_fails_no_good_key() {
    let mut world = World::start().await;
    let begin = async |world: &World| world.redis.pause().unwrap();
    let end = async |world: &World| world.redis.resume().unwrap();
    world.survives(Some(Reason::Slow), begin, end).await;

    let slow = Network::Delay(Duration::from_millis(500));
    for (network, reason) in [
        (Network::BlackHole, Reason::Slow),
        (slow, Reason::Slow),
        (Network::Reset, Reason::Down),
    ] {
        let begin = async |world: &World| world.proxy.set(network);
        let end = async |world: &World| world.proxy.set(Network::Good);
        world.survives(Some(reason), begin, end).await;
    }

    let begin = async |world: &World| world.proxy.half_open();
    world.survives(None, begin, async |_: &World| {}).await;
    world.load.held().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_cluster_that_lost_a_master_fails_no_good_key() {
    let cluster = RedisCluster::start_noticing_losses().await.unwrap();
    let gate = Gate::builder().redis_url(&cluster.url_as("default", ""));
    let gate = gate.start().await;
    let keys: Vec<Key> = (0..ACCOUNTS).map(|_| Key::new()).collect();
    gate.publish_all(&keys).await;
    let mut load = Load::start(&gate, &keys).await;
    load.goes_on().await;
    let lost = &cluster.masters()[1];
    lost.kill().unwrap();
    gate.logs(r#""reason":"cluster_down""#).await;
    load.goes_on().await;
    lost.start_again().await.unwrap();
    cluster.ready().await.unwrap();
    gate.shows(&[EXACT]).await;
    load.goes_on().await;
    load.held().await;
}

#[tokio::test]
async fn gates_share_the_limit_while_redis_is_away() {
    exactly(shares_the_limit).await;
}

async fn shares_the_limit() -> Result<()> {
    let redis = Redis::start().await.unwrap();
    let gate = Gate::builder().redis(&redis).start().await;
    let other = gate.another("gate-1").await;
    let key = gate.key().await;
    for gate in [&*gate, &other] {
        gate.shows(&["water_gate_limits_gates 2"]).await;
    }
    redis.kill().unwrap();
    for gate in [&*gate, &other] {
        let mut client = gate.connect().await;
        let mut statuses = Vec::new();
        for _ in 0..70 {
            let answer = async { client.get(TARGET, &key.text).await.unwrap() };
            statuses.push(decided(&timed(answer).await)?);
        }
        let mut expected = vec![200; 60];
        expected.resize(70, 429);
        equal(statuses, expected)?;
        let shared = [("admitted", 60), ("refused", 10)].map(|(outcome, count)| {
            format!("water_gate_limits_shared_total{{outcome=\"{outcome}\"}} {count}\n")
        });
        gate.shows(&shared.each_ref().map(String::as_str)).await;
    }
    Ok(())
}
