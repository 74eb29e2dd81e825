//! A gate with a real directory and limiter, and without services: a panic, and no room for a page.

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
use water_http::RequestIds;
use water_keystore::connection::Purpose;
use water_keystore::{GateIdentity, Standby, Usage};
use water_kit::gate::contents;
use water_kit::{CURRENT, Key, KeyStore};
use water_runtime::telemetry::{Lines, subscriber};

use super::*;
use crate::last_use::{self, LastUse};
use crate::upstream::{Bounds, Resolver, Upstream};

/// Makes a gate without services, whose directory has this key on a plan with access.
async fn gate(key: &Key, registry: &mut Registry) -> Gate {
    let store = KeyStore::new().await;
    store.rebuild(|| contents(std::slice::from_ref(key))).await;
    let connect = |purpose| (store.connect(purpose), store.instance.clone());
    let length = Duration::from_secs(120);
    let identity = GateIdentity {
        pod: "gate-0".into(),
        uid: "uid".into(),
        grace: length,
    };
    let (connection, instance) = connect(Purpose::Directory);
    let replica = Arc::new(Replica::new(connection, instance, identity));
    let running = Arc::clone(&replica);
    tokio::spawn(async move { match running.run().await {} });
    replica.completed().await;
    let standby = Arc::new(Standby::new(replica.changes(), replica.live_gates()));
    let grace = Arc::new(Grace {
        length,
        standby: Arc::clone(&standby),
        directory: Arc::clone(&replica),
    });
    let nobody = || {
        let resolver = Resolver::new("127.0.0.1:1".parse().unwrap());
        Upstream::new(Arc::new(resolver), Bounds::default())
    };
    let (usage, instance) = connect(Purpose::Directory);
    let usage = Usage::new(usage, instance);
    let (connection, instance) = connect(Purpose::Limiter);
    let one = NonZeroUsize::MIN;
    Gate {
        prefix: KeyPrefix::default(),
        guessing: Arc::default(),
        last_use: LastUse::new(usage, last_use::EVERY, one).notes(0),
        limiter: Limiter::new(connection, instance, standby),
        signer: Signer::new(&CURRENT.parse().unwrap()),
        upstreams: Upstreams {
            departements: nobody(),
            history: nobody(),
        },
        budget: BodyBudget::default(),
        cors: Cors::default(),
        openapi: Arc::new(openapi::representation()),
        metrics: Metrics::of_workers(one, registry, Arc::clone(&grace)).remove(0),
        spans: Spans::new(None),
        directory: replica,
        grace,
    }
}

fn request(key: &Key) -> RequestHead {
    let headers = [("host", "water"), ("authorization", &key.bearer())];
    let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    RequestHead {
        method: Method::GET,
        uri: "/api/v1/stress".parse().unwrap(),
        version: Version::HTTP_11,
        headers: HeaderMap::from_iter(headers),
        client: [192, 0, 2, 1].into(),
        id: RequestIds::new(0).for_request(&HeaderMap::new()),
        trace: None,
        at: Instant::now(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_panic_is_answered_with_500_counted_and_logged() {
    let (key, mut registry) = (Key::new(), Registry::default());
    let gate = gate(&key, &mut registry).await;
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
    let mut metrics = String::new();
    encode(&mut metrics, &registry).unwrap();
    let counted = r#"gate_requests_total{route="stress",status="500",reason="internal"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
    let log = output.iter().flatten().collect();
    let log = String::from_utf8(log).unwrap();
    let mut access = log
        .lines()
        .filter(|line| line.contains(r#""target":"access""#));
    assert!(access.any(|line| line.contains(r#""status":500"#)), "{log}");
}

/// Returns the number of questions to services. Each of them fails, since nobody listens there.
fn asked(registry: &Registry) -> u64 {
    let mut metrics = String::new();
    encode(&mut metrics, registry).unwrap();
    let failures = metrics
        .lines()
        .filter(|line| line.contains("service_failures_total{"));
    let counts = failures.map(|line| line.rsplit(' ').next().unwrap());
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn a_page_that_finds_no_room_is_refused_and_its_service_is_not_asked() {
    let (key, mut registry) = (Key::new(), Registry::default());
    let mut gate = gate(&key, &mut registry).await;
    // The largest body alone takes all of it.
    gate.budget = BodyBudget::of_kib(1024);
    let room = gate.budget.reserve().await.unwrap();
    let (json, csv) = ("/api/v1/stress", "/api/v1/stress?format=csv");
    let get = async |target: &str| {
        let uri = target.parse().unwrap();
        let head = RequestHead {
            uri,
            ..request(&key)
        };
        gate.answer(&head).await
    };
    let refused = get(csv).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "2");
    assert_eq!(asked(&registry), 0);
    get(json).await;
    assert_eq!(asked(&registry), 1, "JSON needs no room");
    drop(room);
    get(csv).await;
    assert_eq!(asked(&registry), 2, "there is room again");
}

/// Sends each write to the test.
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
