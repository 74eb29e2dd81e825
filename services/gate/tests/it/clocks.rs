//! Clocks that are wrong: Redis', by which gates sign identities, against that of the services,
//! which judge them.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use warp::Filter;
use water_harness::{Clock, Redis, wait_until};
use water_http::representation::CACHE_HISTORY;
use water_http::{ClockSkew, Representation, RequestIds, Spans, Verifier};
use water_runtime::listener::listen;
use water_runtime::{Connections, Server, Shutdown};

use crate::site::{IDENTITY, Key, SOON, Site};

const TARGET: &str = "/api/v1/stress";

/// A gate before a Redis with a clock of its own, and a service that checks identities as all do.
struct World {
    clock: Clock,
    _redis: Redis,
    site: Site,
    key: Key,
    service: Registry,
}

impl World {
    async fn start() -> Self {
        let clock = Clock::new().unwrap();
        let redis = Redis::start_on(&clock).await.unwrap();
        let (address, service) = start_service();
        let address = address.to_string();
        let settings = [("WATER_DEPARTEMENTS_ADDRESS", address.as_str())];
        let site = Site::start_unready(&redis, &settings).await;
        site.ready().await;
        let key = site.key().await;
        Self {
            clock,
            _redis: redis,
            site,
            key,
            service,
        }
    }

    /// Moves Redis' clock and asks until the service sees that; every answer must be 200.
    async fn put_redis_ahead(&self, seconds: i64) {
        self.clock.set(seconds).unwrap();
        let seen = async || -> Result<()> {
            let answer = self.site.get(TARGET, &self.key).await;
            assert_eq!(answer.status, 200, "{seconds} s ahead: {answer:?}");
            let shown = self.shown_skew();
            let differs = (shown - seconds as f64).abs();
            ensure!(differs < 2.0, "the service sees {shown} s of {seconds} s");
            Ok(())
        };
        wait_until("the service to see it", SOON, seen)
            .await
            .unwrap();
    }

    /// How far the service says the gates' clock is ahead of its own, in seconds.
    fn shown_skew(&self) -> f64 {
        let mut text = String::new();
        encode(&mut text, &self.service).unwrap();
        let name = "identity_clock_skew_seconds ";
        let mut lines = text.lines();
        let shown = lines.find_map(|line| line.strip_prefix(name)).unwrap();
        shown.parse().unwrap()
    }
}

/// A service in this process, on this machine's clock.
fn start_service() -> (SocketAddr, Registry) {
    let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let verifier = Verifier::new(&IDENTITY[..64].parse().unwrap(), None);
    let (skew, mut metrics) = (ClockSkew::default(), Registry::default());
    skew.register(&mut metrics);
    let routes = water_http::get(TARGET).map(|| Representation::new("{}", CACHE_HISTORY));
    let service = water_http::service(verifier, skew, RequestIds::new(0), Spans::new(None), routes);
    tokio::spawn(async move {
        let server = Server::new(Connections::default(), Shutdown::default(), Duration::ZERO);
        server.serve(listener, |_| service.clone()).await
    });
    (address, metrics)
}

#[tokio::test]
async fn a_good_key_is_served_however_redis_clock_is_moved() {
    let world = World::start().await;
    for seconds in [0, 11, 3600, -3600, -36, 0] {
        world.put_redis_ahead(seconds).await;
    }
}
