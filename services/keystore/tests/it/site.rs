//! An instance on one Redis, with an operator's and a gate's view of it.

mod running;
mod sample;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use water_domain::{KeyHash, Limits, Plan, Timestamp};
use water_harness::{Redis, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::{
    Connection, ConnectionSettings, Contents, Counts, Declaration, DeclarationReceipt, Directory,
    GateIdentity, Instance, Leases, Limiter, Meta, Observation, Origin, Owner, OwnerSnapshot,
    Position, Reason, Replica, Standby, StoreError, StoredEntry, WriteError, Writer,
};

pub use running::{RunningGate, RunningLimiter};
pub use sample::*;
pub use water_kit::SOON;

/// The namespace's uid of every sample installation.
pub const UID: &str = "0b5e";

/// The uid of its WaterDataApi.
pub const API: &str = "a91c";

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

    /// A connection for [`Purpose::Directory`] that is there already, however long that took.
    pub async fn connection(&self) -> Connection {
        let connection = self.connect(Purpose::Directory);
        let directory = Directory::new(connection.clone(), self.instance.clone());
        // To a user who may not read the directory, the refusal is an answer.
        let _ = patiently(async || Ok(directory.observe().await?)).await;
        connection
    }

    /// The directory over a connection of its own, with the product's patience.
    pub fn directory(&self) -> Directory {
        Directory::new(self.connect(Purpose::Directory), self.instance.clone())
    }

    /// Answer of the directory to a question that only reads.
    pub async fn read<T>(&self, ask: impl AsyncFn(&Directory) -> Result<T, StoreError>) -> T {
        let directory = self.directory();
        let read = async || Ok(ask(&directory).await?);
        patiently(read).await.unwrap()
    }

    pub async fn observe(&self) -> Observation {
        self.read(async |directory| directory.observe().await).await
    }

    pub async fn leases(&self) -> Leases {
        self.read(async |directory| directory.leases().await).await
    }

    pub async fn stored(&self) -> HashMap<KeyHash, StoredEntry> {
        self.read(async |directory| directory.stored().await).await
    }

    pub async fn counts(&self) -> Counts {
        self.read(async |directory| directory.counts().await).await
    }

    /// A writer of a complete, empty directory.
    pub async fn ready(&self) -> Writer {
        let writer = self.claim().await;
        let rebuild = async || writer.rebuild(Contents::default).await;
        patiently(rebuild).await.unwrap();
        writer
    }

    /// A claim for the sample installation.
    pub async fn claim(&self) -> Writer {
        self.claim_as(UID, API, None).await.unwrap().0
    }

    /// A claim for these uids. Late answers may cost terms.
    pub async fn claim_as(
        &self,
        owner: &str,
        api: &str,
        take_over: Option<&str>,
    ) -> Result<(Writer, Meta), WriteError> {
        let directory = self.directory();
        patiently(async || directory.claim(owner, api, take_over).await).await
    }

    /// State in the directory of an owner whose keys were generated, and of these hashes.
    pub async fn owner_snapshot(&self, owner: &Owner, hashes: &[KeyHash]) -> OwnerSnapshot {
        self.read(async |directory| {
            let snapshot = directory.owner_snapshot(&owner.uid, &Origin::Generated, hashes);
            snapshot.await
        })
        .await
    }

    /// Declares with the number that the directory has.
    pub async fn declare(
        &self,
        writer: &Writer,
        declaration: Declaration,
    ) -> Result<DeclarationReceipt, WriteError> {
        // With its new number, a declaration that was written already changes nothing.
        let declare = async || {
            let number = self.owner_snapshot(&declaration.owner, &[]).await.number;
            let numbered = Declaration {
                number,
                ..declaration.clone()
            };
            writer.declare(&numbered).await
        };
        patiently(declare).await
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

    /// Gives the lease of `pod` back.
    pub async fn leave(&self, pod: &str) {
        let gate = self.gate(pod);
        let leave = async || Ok(gate.leave().await?);
        patiently(leave).await.unwrap();
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
        self.observe().await.needs_rebuild()
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

/// Repeats what means the same however often it is done, while a busy machine makes Redis late. Its refusal is an
/// answer.
pub async fn patiently<T>(ask: impl AsyncFn() -> Result<T, WriteError>) -> Result<T, WriteError> {
    let answered = async || match ask().await {
        Err(WriteError::Store(late)) if is_late(&late) => Err(late.into()),
        answer => Ok(answer),
    };
    let answer = wait_until("Redis to answer", SOON, answered).await;
    answer.unwrap()
}

/// Whether Redis was not reached, or did not answer in time.
fn is_late(error: &StoreError) -> bool {
    matches!(error.reason(), Reason::Down | Reason::Slow)
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
