//! A gate with its own key directory, and behind it a service that records its requests.

mod key;
mod recorder;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::ops::Deref;

use anyhow::{Result, ensure};
use water_domain::{Limits, Plan};
use water_harness::{Answer, Program, Redis, wait_until};
use water_keystore::{Contents, Declaration, Instance, Origin, Writer};

use crate::patient_directory::patiently;
pub use crate::windows::Overdue;
use crate::windows::exactly_in;
use crate::{CURRENT, KeyStore, PatientDirectory, SOON, Server, built};
pub use key::Key;
pub use recorder::{Behaviour, Recorder, Seen, ok, with};

/// Returns a gate's program with all settings but its addresses, before one service for everything. A pod's
/// uid is `uid-of-` its name, and identities are signed with [`CURRENT`].
pub fn program(redis_url: &str, instance: &Instance, pod: &str, service: SocketAddr) -> Program {
    configured(
        Program::new(built("water-gate")),
        redis_url,
        instance,
        pod,
        service,
    )
}

fn configured(
    program: Program,
    redis_url: &str,
    instance: &Instance,
    pod: &str,
    service: SocketAddr,
) -> Program {
    program
        .env("WATER_LOG", "debug")
        .env("WATER_STOP_DELAY_SECONDS", "0")
        .env("WATER_WORKERS", "1")
        .env("WATER_REDIS_URL", redis_url)
        .env("WATER_INSTANCE", instance.as_str())
        .env("WATER_POD_NAME", pod)
        .env("WATER_POD_UID", format!("uid-of-{pod}"))
        .env("WATER_DEPARTEMENTS_ADDRESS", service.to_string())
        .env("WATER_HISTORY_ADDRESS", service.to_string())
        .env("WATER_IDENTITY_CURRENT", CURRENT)
}

/// Returns the contents that the operator would write: four plans, and these keys.
pub fn contents(keys: &[Key]) -> Contents {
    let plan = |name: &str, limits: Option<(u32, u32)>| Plan {
        name: name.parse().unwrap(),
        limits: limits.map(|(minute, day)| Limits {
            requests_per_minute: minute.try_into().unwrap(),
            requests_per_day: day.try_into().unwrap(),
        }),
    };
    Contents {
        entries: keys.iter().map(Key::entry).collect(),
        plans: vec![
            plan("Enterprise", Some((120, 50_000))),
            plan("Daily", Some((100, 3))),
            plan("Unlimited", Some((u32::MAX, u32::MAX))),
            plan("Free", None),
        ],
    }
}

/// A gate of a test, with all that it needs.
pub struct Gate {
    server: Server,
    /// Answers for both services.
    pub service: Recorder,
    /// The directory's Redis and instance.
    pub store: KeyStore,
    /// Sight of the directory.
    pub directory: PatientDirectory,
    /// The claim of the directory, as the operator has it.
    pub writer: Writer,
}

/// A gate to start.
pub struct GateBuilder {
    redis_url: Option<String>,
    command: Vec<OsString>,
    settings: Vec<(String, String)>,
}

impl GateBuilder {
    /// Puts its directory and limits on this Redis, not on the one that tests share.
    pub fn redis(self, redis: &Redis) -> Self {
        self.redis_url(&redis.url())
    }

    /// Puts its directory and limits on the Redis or Redis Cluster of this URL.
    pub fn redis_url(mut self, url: &str) -> Self {
        self.redis_url = Some(url.to_owned());
        self
    }

    /// Sets a variable, perhaps to another value than its default.
    pub fn set(mut self, name: &str, value: impl ToString) -> Self {
        self.settings.push((name.to_owned(), value.to_string()));
        self
    }

    /// Sets the command that starts it: its last argument is the program's path.
    pub fn under<S: AsRef<OsStr>>(mut self, command: &[S]) -> Self {
        self.command = command.iter().map(|word| word.as_ref().into()).collect();
        self
    }

    /// Starts it on a complete directory without keys.
    pub async fn start_unready(self) -> Gate {
        let url = match self.redis_url {
            Some(url) => url,
            None => Redis::shared().await.unwrap().url(),
        };
        let store = KeyStore::at(url);
        let writer = store.rebuild(|| contents(&[])).await;
        let service = Recorder::start().await;
        let mut words = self.command.into_iter().chain([built("water-gate").into()]);
        let program = Program::new(words.next().unwrap()).args(words);
        let (url, instance) = (store.url(), &store.instance);
        let program = configured(program, url, instance, "gate-0", service.address);
        let set = |program: Program, (name, value)| program.env(name, value);
        let program = self.settings.into_iter().fold(program, set);
        Gate {
            server: Server::start(program),
            service,
            directory: store.directory(),
            writer,
            store,
        }
    }

    /// Starts it and waits until it is ready.
    pub async fn start(self) -> Gate {
        let gate = self.start_unready().await;
        Gate {
            server: gate.server.ready().await,
            ..gate
        }
    }
}

impl Gate {
    /// Starts a gate on the Redis that tests share and waits until it is ready.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns a gate to start, for further settings.
    pub fn builder() -> GateBuilder {
        GateBuilder {
            redis_url: None,
            command: Vec::new(),
            settings: Vec::new(),
        }
    }

    /// Starts another gate, ready: the same directory, limits and service.
    pub async fn another(&self, pod: &str) -> Server {
        let store = &self.store;
        let program = program(store.url(), &store.instance, pod, self.service.address);
        Server::start(program).ready().await
    }

    /// Sends a request on a separate connection.
    pub async fn request(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> Answer {
        let mut client = self.connect().await;
        client.request(method, target, fields).await.unwrap()
    }

    /// Sends a GET with a key, on a separate connection.
    pub async fn get(&self, target: &str, key: &Key) -> Answer {
        self.connect().await.get(target, &key.text).await.unwrap()
    }

    /// Publishes an Enterprise key of a new account, which the gate then knows.
    pub async fn key(&self) -> Key {
        self.publish(Key::new()).await
    }

    /// Publishes a key or its changed record and waits until the gate has applied it.
    pub async fn publish(&self, key: Key) -> Key {
        self.publish_all(std::slice::from_ref(&key)).await;
        key
    }

    /// Publishes many keys at once and waits until the gate has applied them.
    pub async fn publish_all(&self, keys: &[Key]) {
        let mut last = 0;
        for key in keys {
            let records = BTreeMap::from([(key.hash(), key.record.clone())]);
            last = self
                .declare(Declaration {
                    records,
                    ..nothing(key)
                })
                .await;
        }
        self.acknowledged(last).await;
    }

    /// Revokes a key and waits until every gate has applied it.
    pub async fn revoke(&self, key: &Key) {
        let revoked = self.declare(nothing(key)).await;
        self.acknowledged(revoked).await;
    }

    async fn declare(&self, declaration: Declaration) -> u64 {
        self.store.write(&self.writer, declaration).await.seq
    }

    /// Writes the whole directory again, as the operator does when Redis has lost it, and waits until the
    /// gate has it.
    pub async fn republish(&self, keys: &[Key]) {
        let writer = self.store.claim().await;
        let rebuild = async || writer.rebuild(|| contents(keys)).await;
        let rebuilt = patiently(rebuild).await.unwrap();
        let loaded = format!("water_gate_directory_seq {}.0", rebuilt.meta.seq);
        self.shows(&[&loaded, "water_gate_directory_current 1.0"])
            .await;
    }

    /// Returns the metrics of requests that the gate's share of the limits decided, since Redis was late, and of those
    /// that became 503, since departements was: its answers have to take no time. None if there are no such requests,
    /// or the gate does not answer.
    async fn late(&self) -> Option<String> {
        const LATE: [&str; 2] = [
            "water_gate_limits_shared_total{",
            r#"water_gate_service_failures_total{service="departements",reason="slow"}"#,
        ];
        let metrics = self.admin("/metrics").await.ok()?;
        let lines = metrics.text().ok()?.lines();
        let late = lines.filter(|line| LATE.iter().any(|name| line.starts_with(name)));
        let late: Vec<_> = late.filter(|line| !line.ends_with(" 0")).collect();
        (!late.is_empty()).then(|| late.join(", "))
    }

    async fn acknowledged(&self, seq: u64) {
        let acknowledged = async || {
            let gates = self.directory.leases().await?.gates;
            let behind = gates.iter().any(|gate| gate.seq < seq);
            ensure!(!gates.is_empty() && !behind, "{gates:?}");
            Ok(())
        };
        let waited = wait_until("the gates' acknowledgement", SOON, acknowledged);
        waited.await.unwrap();
    }
}

/// Runs a scenario that counts a gate's requests exactly, as [`exactly`](crate::exactly) does, each time on a new gate.
/// One that failed while Redis or a service was late for its gate is run again, too.
pub async fn exactly_through(
    start: impl AsyncFn() -> Gate,
    scenario: impl AsyncFn(&Gate) -> Result<()>,
) {
    exactly_in(start, scenario, Gate::late).await;
}

impl Deref for Gate {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// Returns a declaration that the key's owner holds nothing.
fn nothing(key: &Key) -> Declaration {
    Declaration {
        owner: key.owner(),
        number: 0,
        records: BTreeMap::new(),
        withdrawn: BTreeSet::new(),
        revoked: BTreeSet::new(),
        reinstated: BTreeMap::new(),
        origin: Origin::Generated,
        is_last: false,
    }
}
