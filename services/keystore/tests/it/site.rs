//! An instance on one Redis, with an operator's and a gate's view of it.

mod running;
mod sample;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use water_domain::{KeyHash, Limits, Plan, Timestamp};
use water_harness::Redis;
use water_keystore::connection::Purpose;
use water_keystore::{
    Connection, ConnectionSettings, Contents, Declaration, DeclarationReceipt, Directory,
    GateIdentity, Instance, Limiter, Origin, Owner, OwnerSnapshot, Position, Replica, Standby,
    WriteError, Writer,
};

pub use running::{RunningGate, RunningLimiter};
pub use sample::*;

/// The namespace's uid of every sample installation.
pub const UID: &str = "0b5e";

/// The uid of its WaterDataApi.
pub const API: &str = "a91c";

/// Longer than any wait takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

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
        let writer = self.claim().await;
        writer.rebuild(Contents::default).await.unwrap();
        writer
    }

    /// A claim for the sample installation.
    pub async fn claim(&self) -> Writer {
        let (writer, _) = self.directory().claim(UID, API, None).await.unwrap();
        writer
    }

    /// State in the directory of an owner whose keys were generated, and of these hashes.
    pub async fn owner_snapshot(&self, owner: &Owner, hashes: &[KeyHash]) -> OwnerSnapshot {
        let snapshot = self.directory();
        let snapshot = snapshot
            .owner_snapshot(&owner.uid, &Origin::Generated, hashes)
            .await;
        snapshot.unwrap()
    }

    /// Declares with the number that the directory has.
    pub async fn declare(
        &self,
        writer: &Writer,
        mut declaration: Declaration,
    ) -> Result<DeclarationReceipt, WriteError> {
        declaration.number = self.owner_snapshot(&declaration.owner, &[]).await.number;
        writer.declare(&declaration).await
    }

    /// Declares, and fails unless everything is written and nothing is refused.
    pub async fn write(&self, writer: &Writer, declaration: Declaration) -> Position {
        let declared = self.declare(writer, declaration).await.unwrap();
        assert!(declared.refused.is_empty(), "{declared:?}");
        declared.applied
    }

    /// Publishes a sample key.
    pub async fn publish(&self, writer: &Writer, hash: KeyHash) -> Position {
        self.write(writer, holding(hash)).await
    }

    /// Revokes a sample key.
    pub async fn revoke(&self, writer: &Writer, hash: KeyHash) -> Position {
        self.write(writer, revoking(hash)).await
    }

    /// A gate named `pod`, not running.
    pub fn gate(&self, pod: &str) -> Replica {
        self.gate_with(pod, Duration::from_secs(120))
    }

    /// A gate with this grace, not running.
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
        RunningGate::start(self.gate(pod))
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

    /// A limiter likewise, of one of so many gates.
    pub fn limiter_of(&self, purpose: Purpose, gates: u32) -> RunningLimiter {
        let gates = Arc::new(AtomicU32::new(gates));
        let standby = Arc::new(Standby::new(Arc::default(), gates));
        let connection = self.connect(purpose);
        let limiter = Limiter::new(connection, self.instance.clone(), standby.clone());
        RunningLimiter::start(limiter, standby)
    }

    /// Makes the directory look as if it had been rebuilt on another server.
    pub async fn seems_restarted(&self) {
        self.change_meta("meta.replid = 'another'").await;
    }

    /// Makes the feed end before `meta` does, in one script, so that no gate reads in between.
    pub async fn trim_feed(&self) {
        self.change_meta("meta.seq = meta.seq + 1").await;
    }

    /// Runs this line of Lua on `meta`.
    pub async fn change_meta(&self, change: &str) {
        let script = format!(
            "local meta = cjson.decode(redis.call('GET', KEYS[1])) {change} \
            redis.call('SET', KEYS[1], cjson.encode(meta))"
        );
        let mut call = redis::cmd("EVAL");
        call.arg(script).arg(1).arg(self.instance.meta());
        self.vandalise(&mut call).await;
    }

    /// Whether the directory must be rebuilt before anybody may trust it.
    pub async fn needs_rebuild(&self) -> bool {
        self.directory().observe().await.unwrap().needs_rebuild()
    }

    /// Makes the record of a key undecodable.
    pub async fn spoil(&self, hash: KeyHash) {
        let mut spoil = redis::cmd("HSET");
        spoil.arg(self.instance.records(hash.shard()));
        self.vandalise(spoil.arg(hash.as_bytes()).arg("of a later version"))
            .await;
    }

    /// Removes the record of a key, and of all that lie in its shard, as an eviction would.
    pub async fn evict(&self, hash: KeyHash) {
        self.vandalise(redis::cmd("DEL").arg(self.instance.records(hash.shard())))
            .await;
    }

    /// Runs a command with a plain client.
    pub async fn vandalise(&self, command: &mut redis::Cmd) {
        let vandal = &mut self.vandal().await;
        let _: redis::Value = command.query_async(vandal).await.unwrap();
    }

    /// A plain client, for what neither operator nor gate would do to Redis.
    pub async fn vandal(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.url.as_str()).unwrap();
        // The client's default limit is half a second, which a busy machine may miss.
        let patient = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(SOON))
            .set_response_timeout(Some(SOON));
        client
            .get_multiplexed_async_connection_with_config(&patient)
            .await
            .unwrap()
    }
}

/// Awaits a future, and fails if that takes longer than [`SOON`].
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future)
        .await
        .expect("it did not happen in time")
}

/// Redis' time, as a gate knows it.
#[allow(clippy::disallowed_methods, reason = "tests and servers share a clock")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_millis(since.unwrap().as_millis() as i64).unwrap()
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
