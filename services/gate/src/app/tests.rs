//! The gate with a real directory and limiter, where something panics.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures::executor::block_on;
use http::{HeaderMap, Method, StatusCode, Version};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tracing::subscriber::with_default;
use water_domain::{Limits, PlainKey, Plan};
use water_harness::Redis;
use water_http::RequestIds;
use water_keystore::connection::Purpose;
use water_keystore::{
    ConnectionSettings, Contents, Directory, Entry, GateIdentity, Instance, KeyState, Origin,
    Owner, Record, Standby, Usage,
};
use water_runtime::telemetry::{Lines, subscriber};

use super::*;
use crate::last_use::{self, LastUse};
use crate::upstream::{Bounds, Resolver, Upstream};

const IDENTITY: &str = "4e6f7420612073656372657420617420616c6c3a206120746573742773206b65";

/// A gate whose directory has this key on a plan with access, and nobody behind it.
async fn gate(redis: &Redis, key: &PlainKey<'_>, registry: &mut Registry) -> Gate {
    let settings = ConnectionSettings::new(&redis.url(), None).unwrap();
    let instance = Instance::new("water", "panic").unwrap();
    let connect = |purpose| settings.connect(purpose);
    let directory = Directory::new(connect(Purpose::Directory), instance.clone());
    let (writer, _) = directory.claim("0b5e", "a91c", None).await.unwrap();
    writer.rebuild(|| contents(key)).await.unwrap();
    let identity = GateIdentity {
        pod: "gate-0".into(),
        uid: "uid".into(),
        grace: Duration::from_secs(120),
    };
    let replica = Replica::new(connect(Purpose::Directory), instance.clone(), identity);
    let replica = Arc::new(replica);
    let running = Arc::clone(&replica);
    tokio::spawn(async move { match running.run().await {} });
    replica.completed().await;
    let grace = Arc::new(Grace {
        length: Duration::from_secs(120),
        standby: Arc::new(Standby::new(replica.changes(), replica.live_gates())),
        directory: Arc::clone(&replica),
    });
    let nobody = || Arc::new(Resolver::new("127.0.0.1:1".parse().unwrap()));
    let usage = Usage::new(connect(Purpose::Directory), instance.clone());
    let one = NonZeroUsize::MIN;
    Gate {
        prefix: KeyPrefix::default(),
        guessing: Arc::default(),
        last_use: LastUse::new(usage, last_use::EVERY, one).notes(0),
        limiter: Limiter::new(
            connect(Purpose::Limiter),
            instance,
            Arc::clone(&grace.standby),
        ),
        signer: Signer::new(&IDENTITY.parse().unwrap()),
        upstreams: Upstreams {
            departements: Upstream::new(nobody(), Bounds::default()),
            history: Upstream::new(nobody(), Bounds::default()),
        },
        budget: BodyBudget::default(),
        cors: Cors::new(Vec::new()),
        openapi: Arc::new(openapi::representation()),
        metrics: Metrics::of_workers(one, registry, Arc::clone(&grace)).remove(0),
        spans: Spans::new(None),
        directory: replica,
        grace,
    }
}

fn contents(key: &PlainKey<'_>) -> Contents {
    let owner = Owner {
        uid: "uid".into(),
        namespace: "water".into(),
        name: "acme".into(),
    };
    let record = Record {
        key_id: key.key_id(),
        account: "acme".parse().unwrap(),
        plan: "Enterprise".parse().unwrap(),
        state: KeyState::Active,
        not_before: None,
        expires: None,
        retires: None,
        revision: 1,
    };
    let limits = Limits {
        requests_per_minute: 120.try_into().unwrap(),
        requests_per_day: 50_000.try_into().unwrap(),
    };
    Contents {
        entries: vec![Entry {
            hash: key.hash(),
            record,
            owner,
            origin: Origin::Generated,
        }],
        plans: vec![Plan {
            name: "Enterprise".parse().unwrap(),
            limits: Some(limits),
        }],
    }
}

fn request(key: &PlainKey<'_>) -> Received {
    let bearer = format!("Bearer {}", key.expose());
    let headers = [("host", "water"), ("authorization", &bearer)];
    let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    Received {
        method: Method::GET,
        uri: "/api/v1/stress".parse().unwrap(),
        version: Version::HTTP_11,
        headers: HeaderMap::from_iter(headers),
        client: [192, 0, 2, 1].into(),
        id: RequestIds::new(0).of(&HeaderMap::new()),
        trace: None,
        at: Instant::now(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_panic_is_answered_with_500_counted_and_logged() {
    let redis = Redis::start().await.unwrap();
    let key = PlainKey::generate(&KeyPrefix::default(), &[0x5a; 48]);
    let mut registry = Registry::default();
    let gate = gate(&redis, &key, &mut registry).await;
    let request = request(&key);
    let (sender, output) = mpsc::channel();
    let lines = Lines::start(Sent(sender));
    let log = subscriber("info", lines.clone()).unwrap();
    // Tokio's timer, which the limiter sets, panics on a thread without its runtime.
    let outside = || with_default(log, || block_on(gate.answer(&request)));
    let answer = thread::scope(|scope| scope.spawn(outside).join().unwrap());
    lines.close();
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(answer.headers()["x-request-id"], request.id.as_str());
    let body: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(body["code"], "internal");
    let mut metrics = String::new();
    encode(&mut metrics, &registry).unwrap();
    let counted = r#"gate_requests_total{route="stress",status="500",reason="internal"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
    let log = output.try_iter().flatten().collect();
    let log = String::from_utf8(log).unwrap();
    let mut lines = log.lines();
    let access = lines.find(|line| line.contains(r#""target":"access""#));
    assert!(
        access.is_some_and(|line| line.contains(r#""status":500"#)),
        "{log}"
    );
}

/// Hands each write to the test.
struct Sent(mpsc::Sender<Vec<u8>>);

impl Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.send(bytes.to_vec());
        sent.map(|()| bytes.len()).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
