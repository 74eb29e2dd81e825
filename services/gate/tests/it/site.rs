//! One gate, its directory on a Redis, and the recording service behind it.

mod key;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use water_domain::{Limits, Plan, Timestamp};
use water_harness::{Answer, HttpClient, Port, Process, Program, Redis, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::{
    ConnectionSettings, Contents, Declaration, Directory, Instance, Origin, Writer,
};

use crate::recorder::Recorder;
pub use key::Key;

/// Longer than anything that is waited for takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

/// What the gate signs identities with in tests.
pub const IDENTITY: &str = "4e6f7420612073656372657420617420616c6c3a206120746573742773206b6579";

/// The gate itself as a command.
pub const GATE: &str = env!("CARGO_BIN_EXE_water-gate");

pub struct Site {
    pub gate: Process,
    pub service: Recorder,
    pub writer: Writer,
    pub directory: Directory,
    pub instance: Instance,
    http: Port,
    admin: Port,
}

impl Site {
    /// A ready gate on the Redis that all tests share.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with more settings.
    pub async fn start_with(settings: &[(&str, &str)]) -> Self {
        let site = Self::start_unready(Redis::shared().await.unwrap(), settings).await;
        site.ready().await;
        site
    }

    /// A ready gate that another program starts, which is given these arguments and the gate's path.
    pub async fn start_under(wrapper: &[&str], settings: &[(&str, &str)]) -> Self {
        let redis = Redis::shared().await.unwrap().url();
        let site = Self::start_as(&[wrapper, &[GATE]].concat(), &redis, settings).await;
        site.ready().await;
        site
    }

    /// A gate on this Redis, just started; the directory is complete and has both plans.
    pub async fn start_unready(redis: &Redis, settings: &[(&str, &str)]) -> Self {
        Self::start_at(&redis.url(), settings).await
    }

    /// The same on the Redis or Redis Cluster of this URL.
    pub async fn start_at(redis_url: &str, settings: &[(&str, &str)]) -> Self {
        Self::start_as(&[GATE], redis_url, settings).await
    }

    async fn start_as(command: &[&str], redis_url: &str, settings: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let instance = Instance::new("water", &format!("gate-{number}")).unwrap();
        let connection = ConnectionSettings::new(redis_url, None).unwrap();
        let directory = Directory::new(connection.connect(Purpose::Directory), instance.clone());
        let (writer, _) = directory.claim("0b5e", "a91c", None).await.unwrap();
        writer.rebuild(|| contents(&[])).await.unwrap();
        let service = Recorder::start().await;
        let (http, admin) = (Port::reserve().unwrap(), Port::reserve().unwrap());
        let mut program = program(command, "gate-0", &http, &admin)
            .env("WATER_REDIS_URL", redis_url)
            .env("WATER_INSTANCE", instance.as_str())
            .env("WATER_DEPARTEMENTS_ADDRESS", service.address.to_string())
            .env("WATER_HISTORY_ADDRESS", service.address.to_string());
        for (name, value) in settings {
            program = program.env(name, value);
        }
        Self {
            gate: program.start().unwrap(),
            service,
            writer,
            directory,
            instance,
            http,
            admin,
        }
    }

    /// Waits until the gate says that it is ready.
    pub async fn ready(&self) {
        until_ready(&self.gate, &self.admin).await;
    }

    /// What the admin port says.
    pub async fn admin(&self, path: &str) -> Result<Answer> {
        ask(&self.admin, path).await
    }

    /// Waits until the gate counts one request for which it could not connect to the history service in
    /// time, and so did not wait for an answer until the deadline.
    pub async fn gave_up_connecting(&self) {
        let failure = r#"service_failures_total{service="history",reason="connect_slow"} 1"#;
        let counted = async || -> Result<()> {
            let metrics = self.admin("/metrics").await?;
            ensure!(metrics.text()?.contains(failure), "{metrics:?}");
            Ok(())
        };
        wait_until("the failure to be counted", SOON, counted)
            .await
            .unwrap();
    }

    /// Where the gate answers requests.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// A new connection to the gate.
    pub async fn connect(&self) -> HttpClient {
        self.try_connect().await.unwrap()
    }

    /// The same, if the gate still takes one.
    pub async fn try_connect(&self) -> Result<HttpClient> {
        HttpClient::connect(self.http.address()).await
    }

    /// One request on a connection of its own.
    pub async fn request(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> Answer {
        self.connect()
            .await
            .request(method, target, fields)
            .await
            .unwrap()
    }

    /// GET with a key, on a connection of its own.
    pub async fn get(&self, target: &str, key: &Key) -> Answer {
        self.connect().await.get(target, &key.text).await.unwrap()
    }

    /// A published Enterprise key of an account of its own, which the gate knows.
    pub async fn key(&self) -> Key {
        self.publish(Key::new()).await
    }

    /// Publishes a key or its changed record and waits until the gate has applied it.
    pub async fn publish(&self, key: Key) -> Key {
        self.publish_all(std::slice::from_ref(&key)).await;
        key
    }

    /// The same of many keys at once.
    pub async fn publish_all(&self, keys: &[Key]) {
        let mut last = 0;
        for key in keys {
            let mut declaration = self.revocation(key).await;
            declaration.records = BTreeMap::from([(key.hash(), key.record.clone())]);
            last = self.declare(&declaration).await;
        }
        self.acknowledged(last).await;
    }

    /// Revokes a key and waits until every gate has applied it.
    pub async fn revoke(&self, key: &Key) {
        let revocation = self.revocation(key).await;
        let revoked = self.declare(&revocation).await;
        self.acknowledged(revoked).await;
    }

    /// That the key's owner holds nothing from now on.
    pub async fn revocation(&self, key: &Key) -> Declaration {
        let (owner, origin) = (key.owner(), Origin::Generated);
        let snapshot = self
            .directory
            .owner_snapshot(&owner.uid, &origin, &[])
            .await;
        Declaration {
            owner,
            number: snapshot.unwrap().number,
            records: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            revoked: BTreeSet::new(),
            reinstated: BTreeMap::new(),
            origin,
            is_last: false,
        }
    }

    async fn declare(&self, declaration: &Declaration) -> u64 {
        let declared = self.writer.declare(declaration).await.unwrap();
        assert!(declared.refused.is_empty(), "{declared:?}");
        declared.applied.seq
    }

    /// Writes the directory anew, as the operator does when Redis has lost it or was promoted, and
    /// tells its last change.
    pub async fn republish(&self, redis: &Redis, keys: &[Key]) -> u64 {
        let settings = ConnectionSettings::new(&redis.url(), None).unwrap();
        let connection = settings.connect(Purpose::Directory);
        let directory = Directory::new(connection, self.instance.clone());
        let (writer, _) = directory.claim("0b5e", "a91c", None).await.unwrap();
        let rebuilt = writer.rebuild(|| contents(keys)).await.unwrap();
        rebuilt.meta.seq
    }

    async fn acknowledged(&self, seq: u64) {
        let acknowledged = async || {
            let leases = self.directory.leases().await?;
            let behind = leases.gates.iter().any(|gate| gate.seq < seq);
            ensure!(!leases.gates.is_empty() && !behind, "{:?}", leases.gates);
            Ok(())
        };
        wait_until("the gate's acknowledgement", SOON, acknowledged)
            .await
            .unwrap();
    }
}

/// A moment in the past, and one in the future.
pub fn past() -> Timestamp {
    Timestamp::parse("2020-01-01T00:00:00Z").unwrap()
}

pub fn future() -> Timestamp {
    Timestamp::parse("2120-01-01T00:00:00Z").unwrap()
}

/// The status and code of a problem, after what holds for every problem was checked.
pub fn problem(answer: &Answer) -> (u16, String) {
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{answer:?}"
    );
    assert_eq!(
        answer.header("cache-control"),
        Some("no-store"),
        "{answer:?}"
    );
    assert_eq!(
        answer.header("x-content-type-options"),
        Some("nosniff"),
        "{answer:?}"
    );
    let body = answer.json().unwrap();
    assert_eq!(body["status"], answer.status, "{answer:?}");
    assert_eq!(
        body["requestId"].as_str(),
        answer.header("x-request-id"),
        "{answer:?}"
    );
    (answer.status, body["code"].as_str().unwrap().to_owned())
}

/// A problem as [`problem`] tells it.
pub fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// What the admin port says.
pub async fn ask(admin: &Port, path: &str) -> Result<Answer> {
    HttpClient::connect(admin.address())
        .await?
        .request("GET", path, &[])
        .await
}

/// Waits until a gate says that it is ready.
pub async fn until_ready(gate: &Process, admin: &Port) {
    let ready = async || -> Result<()> {
        let answer = ask(admin, "/ready").await?;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    };
    gate.ready(SOON, ready).await.unwrap();
}

/// A gate, started by this command, that is told all but where Redis and the services are.
pub fn program(command: &[&str], pod: &str, http: &Port, admin: &Port) -> Program {
    Program::new(command[0])
        .args(&command[1..])
        .env("WATER_LISTEN_ADDRESS", http.address().to_string())
        .env("WATER_ADMIN_ADDRESS", admin.address().to_string())
        .env("WATER_LOG", "debug")
        .env("WATER_STOP_DELAY_SECONDS", "1")
        .env("WATER_WORKERS", "1")
        .env("WATER_POD_NAME", pod)
        .env("WATER_POD_UID", format!("uid-of-{pod}"))
        .env("WATER_IDENTITY_CURRENT", &IDENTITY[..64])
}

/// All that the operator would write: both plans, and these keys.
pub fn contents(keys: &[Key]) -> Contents {
    let limited = |name: &str, minute: u32, day: u32| Plan {
        name: name.parse().unwrap(),
        limits: Some(Limits {
            requests_per_minute: minute.try_into().unwrap(),
            requests_per_day: day.try_into().unwrap(),
        }),
    };
    let free = Plan {
        name: "Free".parse().unwrap(),
        limits: None,
    };
    Contents {
        entries: keys.iter().map(Key::entry).collect(),
        plans: vec![
            limited("Enterprise", 120, 50_000),
            limited("Daily", 100, 3),
            limited("Unlimited", u32::MAX, u32::MAX),
            free,
        ],
    }
}
