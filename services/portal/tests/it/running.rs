//! Replicas of a portal, run in the test's own process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Deref;

use anyhow::ensure;
use kube::Client;
use serde_json::Value;
use tokio::task::JoinHandle;
use water_harness::{HttpClient, wait_until};
use water_kit::{Browser, KeyStore, Portal, SOON};
use water_portal::{Config, Pages, Service};
use water_runtime::settings::from_settings;
use water_runtime::shutdown::Stage;
use water_runtime::{Process, Settings, program};

/// A portal with one replica.
pub struct Running {
    portal: Portal,
    replica: Replica,
}

impl Deref for Running {
    type Target = Portal;

    fn deref(&self) -> &Portal {
        &self.portal
    }
}

impl Running {
    /// Starts a ready portal on the Redis that all tests share.
    pub async fn start() -> Self {
        Self::start_with(&KeyStore::new().await, &[]).await
    }

    /// Starts a ready portal on this store, with further settings.
    pub async fn start_with(store: &KeyStore, more: &[(&str, &str)]) -> Self {
        let portal = Portal::on(store, more).await;
        let index = ("index.html".to_owned(), b"<!doctype html>".to_vec());
        let replica = Replica::start(&portal, Pages::new([index]).unwrap()).await;
        Self { portal, replica }
    }

    /// Starts another replica of the same portal, with these pages.
    pub async fn another(&self, pages: Pages) -> Replica {
        Replica::start(&self.portal, pages).await
    }

    /// Returns a browser that was never here.
    pub fn browser(&self) -> Browser {
        Browser::new(self.replica.address)
    }

    /// Returns Anna, signed in by a browser of her own.
    pub async fn anna(&self) -> Browser {
        self.portal.anna(self.browser()).await
    }

    /// Returns a new person, signed in.
    pub async fn somebody(&self) -> Browser {
        self.portal.somebody(self.browser()).await
    }

    /// Whether the portal calls itself ready, but for the API server, which these tests are without.
    pub fn is_ready(&self) -> bool {
        self.replica.is_ready()
    }

    /// Returns the number of sign-ins by outcome.
    pub async fn sign_ins(&self) -> BTreeMap<String, u64> {
        let metrics = self.replica.admin("/metrics").await;
        let lines = metrics.text().unwrap().lines();
        let line = |line: &str| {
            let rest = line.strip_prefix("water_portal_sign_ins_total{outcome=\"")?;
            let (outcome, count) = rest.split_once("\"} ")?;
            Some((outcome.to_owned(), count.parse().unwrap()))
        };
        lines.filter_map(line).collect()
    }

    /// Returns the report about the provider that the operator reads.
    pub async fn provider_report(&self) -> Value {
        self.replica.admin("/provider").await.json().unwrap()
    }
}

/// A process of the portal.
pub struct Replica {
    pub address: SocketAddr,
    admin: SocketAddr,
    process: Process,
    serving: Option<JoinHandle<u64>>,
}

impl Replica {
    /// Starts a ready replica with these pages.
    async fn start(portal: &Portal, pages: Pages) -> Self {
        let pairs = portal.settings.iter();
        let pairs = pairs.map(|(name, value)| (&**name, &**value));
        let config: Config = from_settings(&mut Settings::from_pairs(pairs)).unwrap();
        let mut process = Process::start(program!()).unwrap();
        // An API server that is away.
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(nowhere).unwrap();
        let service = Service::start(config, pages, client, 1, &mut process).unwrap();
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

    fn is_ready(&self) -> bool {
        self.process.readiness.missing() == ["plans", "bounds of its rights"]
    }

    async fn admin(&self, path: &str) -> water_harness::Answer {
        let mut client = HttpClient::connect(self.admin).await.unwrap();
        client.request("GET", path, &[]).await.unwrap()
    }

    /// Asks it to stop; it goes on, since clients may not have heard yet.
    pub fn asked_to_stop(&self) {
        self.process.shutdown.advance(Stage::Stopping);
    }

    /// Ends it as its pod ends once it gets no new requests; returns the number of connections it cut.
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
