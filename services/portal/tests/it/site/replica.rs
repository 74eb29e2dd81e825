//! One process of the portal, run in the test's own.

use std::net::SocketAddr;

use anyhow::ensure;
use kube::Client;
use tokio::task::JoinHandle;
use water_harness::wait_until;
use water_portal::{Config, Pages, Service};
use water_runtime::settings::from_settings;
use water_runtime::shutdown::Stage;
use water_runtime::{Process, Settings, program};

use super::SOON;

pub struct Replica {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    process: Process,
    serving: Option<JoinHandle<u64>>,
}

impl Replica {
    /// A ready one with these pages.
    pub async fn start(settings: &[(String, String)], pages: Pages) -> Self {
        let pairs = settings.iter().map(|(name, value)| (&**name, &**value));
        let config: Config = from_settings(&mut Settings::from_pairs(pairs)).unwrap();
        let mut process = Process::start(program!()).unwrap();
        let service = Service::start(config, pages, nobody(), 1, &mut process).unwrap();
        let address = service.address().unwrap();
        let admin = service.admin_address();
        let serving = tokio::spawn(async move {
            match service.serve().await {
                Ok(drained) => drained.cut as u64,
                Err(never) => match never {},
            }
        });
        let replica = Self {
            address,
            admin,
            process,
            serving: Some(serving),
        };
        let ready = async || {
            let missing = replica.process.readiness.missing();
            ensure!(replica.is_ready(), "missing: {missing:?}");
            Ok(())
        };
        wait_until("a ready portal", SOON, ready).await.unwrap();
        replica
    }

    /// Whether it calls itself ready, but for the API server, which these tests are without.
    pub fn is_ready(&self) -> bool {
        self.process.readiness.missing() == ["plans", "bounds of its rights"]
    }

    /// It goes on: those who send requests may not have heard yet.
    pub fn asked_to_stop(&self) {
        self.process.shutdown.advance(Stage::Stopping);
    }

    /// Ends it as its pod ends once it gets no new requests; answers how many connections it cut.
    pub async fn end(mut self) -> u64 {
        self.process.shutdown.advance(Stage::Draining);
        self.serving.take().unwrap().await.unwrap()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

/// A client of an API server that is away.
fn nobody() -> Client {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    Client::try_from(config).unwrap()
}
