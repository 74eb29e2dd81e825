//! One instance on one Redis, with an operator's and a gate's view of it, and sample keys.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use water_domain::{KeyHash, Limits, Plan, Timestamp};
use water_harness::{Redis, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::{
    Change, Connection, ConnectionSettings, Contents, Directory, Entry, GateIdentity, Instance,
    KeyState, Limiter, Owner, Reason, Record, Removal, Replica, ReplicaStatus, Standby, Writer,
};

/// The namespace's uid of every sample installation.
pub const UID: &str = "0b5e";

/// Longer than anything that is waited for takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(10);

pub struct Site {
    pub instance: Instance,
    url: String,
}

impl Site {
    /// A new instance on the server that all tests share.
    pub async fn new() -> Self {
        Self::on(Redis::shared().await.unwrap())
    }

    /// A new instance on `redis`.
    pub fn on(redis: &Redis) -> Self {
        Self::at(redis.url())
    }

    /// A new instance, seen as the user of `url`.
    pub fn at(url: String) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let instance = Instance::new("water", &format!("test-{number}")).unwrap();
        Self { instance, url }
    }

    /// The same instance as another user sees it.
    pub fn seen_at(&self, url: String) -> Self {
        Self {
            instance: self.instance.clone(),
            url,
        }
    }

    pub fn connect(&self, purpose: Purpose) -> Connection {
        ConnectionSettings::new(&self.url, None)
            .unwrap()
            .connect(purpose)
    }

    pub fn directory(&self) -> Directory {
        Directory::new(self.connect(Purpose::Directory), self.instance.clone())
    }

    /// A writer of a complete, empty directory.
    pub async fn ready(&self) -> Writer {
        let (writer, _) = self.directory().claim(UID, None).await.unwrap();
        writer.rebuild(Contents::default).await.unwrap();
        writer
    }

    /// A gate named `pod`, not running.
    pub fn gate(&self, pod: &str) -> Replica {
        self.gate_with(pod, Duration::from_secs(120))
    }

    /// The same with this grace.
    pub fn gate_with(&self, pod: &str, grace: Duration) -> Replica {
        let identity = GateIdentity {
            pod: pod.into(),
            uid: format!("uid-of-{pod}"),
            grace,
        };
        Replica::new(
            self.connect(Purpose::Directory),
            self.instance.clone(),
            identity,
        )
    }

    /// A gate that runs until it is dropped.
    pub fn running_gate(&self, pod: &str) -> RunningGate {
        RunningGate::of(self.gate(pod))
    }

    /// A running gate with a complete copy.
    pub async fn complete_gate(&self, pod: &str) -> RunningGate {
        let gate = self.running_gate(pod);
        soon(gate.completed()).await;
        gate
    }

    /// A limiter over a connection for `purpose` that recovers until it is dropped.
    pub fn limiter(&self, purpose: Purpose) -> RunningLimiter {
        self.limiter_of(purpose, 1)
    }

    /// The same, of one of so many gates.
    pub fn limiter_of(&self, purpose: Purpose, gates: u32) -> RunningLimiter {
        let gates = Arc::new(AtomicU32::new(gates));
        let standby = Arc::new(Standby::with(Arc::default(), gates));
        let connection = self.connect(purpose);
        let limiter = Limiter::new(connection, self.instance.clone(), standby.clone());
        let limiter = Arc::new(limiter);
        let running = limiter.clone();
        let task = tokio::spawn(async move {
            running.attend().await;
        });
        RunningLimiter {
            limiter,
            standby,
            task,
        }
    }

    /// Makes the directory look as if it had been rebuilt on another server.
    pub async fn seems_restarted(&self) {
        let other_server = "local meta = cjson.decode(redis.call('GET', KEYS[1])) \
            meta.replid = 'another' redis.call('SET', KEYS[1], cjson.encode(meta))";
        let _: () = redis::cmd("EVAL")
            .arg(other_server)
            .arg(1)
            .arg(self.instance.meta())
            .query_async(&mut self.vandal().await)
            .await
            .unwrap();
    }

    /// Makes the feed end before `meta` does, in one script, so that no round of a gate falls
    /// between the change and its disappearance.
    pub async fn trim_feed(&self) {
        let lost = "local meta = cjson.decode(redis.call('GET', KEYS[1])) \
            meta.seq = meta.seq + 1 redis.call('SET', KEYS[1], cjson.encode(meta))";
        let _: () = redis::cmd("EVAL")
            .arg(lost)
            .arg(1)
            .arg(self.instance.meta())
            .query_async(&mut self.vandal().await)
            .await
            .unwrap();
    }

    /// Removes the record of a key, and of all that lie in its shard, as an eviction would.
    pub async fn evict(&self, hash: KeyHash) {
        let _: () = redis::cmd("DEL")
            .arg(self.instance.records(hash.shard()))
            .query_async(&mut self.vandal().await)
            .await
            .unwrap();
    }

    /// A plain client, to do to Redis what neither operator nor gate would do.
    pub async fn vandal(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.url.as_str()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }
}

pub struct RunningLimiter {
    pub limiter: Arc<Limiter>,
    pub standby: Arc<Standby>,
    task: JoinHandle<()>,
}

impl RunningLimiter {
    /// Whether one request of `account` is admitted, on a plan that allows a million.
    pub async fn admits(&self, account: &str) -> bool {
        self.admits_under(account, limits(1_000_000, 1_000_000))
            .await
    }

    /// Charges requests until Redis fails for this reason; the first failures after a break may differ.
    pub async fn fails_for(&self, reason: Reason) {
        let failing = async || {
            self.admits("acme").await;
            let failing = self.standby.status().failing.map(|(reason, _)| reason);
            ensure!(failing == Some(reason), "{failing:?}");
            Ok(())
        };
        wait_until("the failure", SOON, failing).await.unwrap();
    }

    /// Charges requests until Redis decides.
    pub async fn decides_by_redis(&self) {
        let deciding = async || {
            self.admits("acme").await;
            let status = self.standby.status();
            ensure!(status.failing.is_none() && !status.degraded, "{status:?}");
            Ok(())
        };
        wait_until("Redis to decide", SOON, deciding).await.unwrap();
    }

    /// Whether one request of `account` is admitted under these limits.
    pub async fn admits_under(&self, account: &str, limits: Limits) -> bool {
        let account = account.parse().unwrap();
        let decision = self.limiter.charge(&account, limits, now()).await;
        decision.unwrap().accepted
    }
}

impl Drop for RunningLimiter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct RunningGate {
    replica: Arc<Replica>,
    task: JoinHandle<()>,
}

impl Deref for RunningGate {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        &self.replica
    }
}

impl Drop for RunningGate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningGate {
    pub fn of(replica: Replica) -> Self {
        let replica = Arc::new(replica);
        let running = replica.clone();
        let task = tokio::spawn(async move {
            running.run().await;
        });
        Self { replica, task }
    }

    /// What a request with this key would find.
    pub fn record(&self, hash: KeyHash) -> Option<Record> {
        self.view().expect("the gate has a copy").record(&hash)
    }

    /// Waits until the copy has the key, or until it has it no more.
    pub async fn knows(&self, hash: KeyHash, known: bool) {
        let seen = async || {
            let found = self.record(hash).is_some();
            ensure!(found == known, "record there: {found}, {:?}", self.status());
            Ok(())
        };
        wait_until("the gate to follow", SOON, seen).await.unwrap();
    }

    /// Waits until a lease is renewed that much later than this was asked for.
    pub async fn renews_for(&self, time: Duration) {
        let end = Instant::now() + time;
        let renewed = |status: &ReplicaStatus| {
            let renewal = status.since_renewal.map(|since| Instant::now() - since);
            renewal > Some(end)
        };
        self.comes_to("a renewal", renewed).await;
    }

    /// Waits until the gate doubts its copy, though the feed was not silent for long.
    pub async fn doubts(&self) {
        let doubtful = |status: &ReplicaStatus| {
            !status.current && status.since_reply < Some(Duration::from_secs(5))
        };
        self.comes_to("doubt", doubtful).await;
    }

    /// Waits until the gate's own account of itself is as wanted.
    pub async fn comes_to(&self, what: &str, wanted: impl Fn(&ReplicaStatus) -> bool) {
        let seen = async || -> Result<()> {
            let status = self.status();
            ensure!(wanted(&status), "{status:?}");
            Ok(())
        };
        wait_until(what, SOON, seen).await.unwrap();
    }
}

/// Awaits what must come, and fails when it does not.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future)
        .await
        .expect("it did not happen in time")
}

/// The hash of sample key `number`; neighbours lie in different shards.
pub fn hash(number: u32) -> KeyHash {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
    bytes[4..8].copy_from_slice(&number.to_be_bytes());
    KeyHash::from_bytes(bytes)
}

/// Redis' time, as a gate knows it.
#[allow(clippy::disallowed_methods, reason = "tests and servers share a clock")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_millis(since.unwrap().as_millis() as i64).unwrap()
}

pub fn record() -> Record {
    Record {
        key_id: "4fGh7Kq2ZpX1".parse().unwrap(),
        account: "acme".parse().unwrap(),
        plan: "Enterprise".parse().unwrap(),
        state: KeyState::Active,
        not_before: None,
        expires: None,
        retires: None,
        revision: 1,
    }
}

pub fn suspended() -> Record {
    Record {
        state: KeyState::Suspended,
        ..record()
    }
}

pub fn owner() -> Owner {
    owner_named("acme-prod")
}

pub fn owner_named(name: &str) -> Owner {
    Owner {
        uid: format!("uid-of-{name}").into(),
        namespace: "water".into(),
        name: name.into(),
    }
}

pub fn put(hash: KeyHash) -> Change {
    put_record(hash, record())
}

pub fn put_record(hash: KeyHash, record: Record) -> Change {
    Change::Put {
        hash,
        record,
        owner: owner(),
        reinstate: false,
    }
}

pub fn revoke(hash: KeyHash) -> Change {
    Change::Remove {
        hash,
        owner: owner(),
        removal: Removal::Revoke,
    }
}

pub fn withdraw(hash: KeyHash) -> Change {
    Change::Remove {
        hash,
        owner: owner(),
        removal: Removal::Withdraw,
    }
}

pub fn entry(hash: KeyHash) -> Entry {
    Entry {
        hash,
        record: record(),
        owner: owner(),
    }
}

/// A directory's contents of these keys and no plan.
pub fn contents(hashes: impl IntoIterator<Item = KeyHash>) -> Contents {
    Contents {
        entries: hashes.into_iter().map(entry).collect(),
        plans: Vec::new(),
    }
}

pub fn limits(per_minute: u32, per_day: u32) -> Limits {
    Limits {
        requests_per_minute: per_minute.try_into().unwrap(),
        requests_per_day: per_day.try_into().unwrap(),
    }
}

pub fn plan(name: &str, limits: Option<Limits>) -> Plan {
    Plan {
        name: name.parse().unwrap(),
        limits,
    }
}
