//! The portal's own binary, with its Redis, its API server and an identity provider.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use water_harness::{Answer, HttpClient, IdentityProvider, Redis};

use super::cluster::{Cluster, INSTALLATION};
use super::scale::Scale;
use crate::cpu;
use crate::operator::api::NAMESPACE;
use crate::server::Server;

/// Digits of keys that protect nothing here.
const DIGITS: &str = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f";
/// What the portal is to its identity provider.
pub const CLIENT: &str = "water-portal";
const MIB: f64 = 1024.0 * 1024.0;

/// A ready portal, and what it needs.
pub struct Site {
    portal: Server,
    /// Where the keys are.
    pub cluster: Cluster,
    /// Where people sign in.
    pub provider: IdentityProvider,
    redis: Redis,
}

impl Site {
    /// Starts everything.
    pub async fn start(scale: Scale) -> Result<Self> {
        let (redis, provider) = (Redis::start().await?, IdentityProvider::start().await?);
        let cluster = Cluster::start(scale).await?;
        let kubeconfig = cluster.kubeconfig()?;
        let portal = Server::start("water-portal", |program, _| {
            program
                .env("KUBECONFIG", kubeconfig)
                .env("WATER_REDIS_URL", redis.url())
                .env("WATER_INSTANCE", format!("{NAMESPACE}.{INSTALLATION}"))
                // Nobody asks for data here.
                .env("WATER_DEPARTEMENTS_ADDRESS", "127.0.0.1:1")
                .env("WATER_HISTORY_ADDRESS", "127.0.0.1:1")
                .env("WATER_IDENTITY_CURRENT", DIGITS)
                .env("WATER_PORTAL_URL", "https://water.example")
                .env("WATER_OIDC_ISSUER", provider.issuer())
                .env("WATER_OIDC_CLIENT_ID", CLIENT)
                .env("WATER_OIDC_CLIENT_SECRET", "bench")
                .env("WATER_OIDC_CA", provider.authority())
                .env("WATER_PORTAL_SEAL_KEY", DIGITS)
                .env("WATER_TRUSTED_PROXIES", "127.0.0.0/8")
        });
        Ok(Self {
            portal: portal.await?,
            cluster,
            provider,
            redis,
        })
    }

    /// Where an ingress would send requests.
    pub fn address(&self) -> SocketAddr {
        self.portal.address()
    }

    /// The portal's process id.
    pub fn id(&self) -> u32 {
        self.portal.id()
    }

    /// The answer to a GET with these header fields.
    pub async fn ask(&self, target: &str, fields: &[(&str, &str)]) -> Result<Answer> {
        let mut client = HttpClient::connect(self.address()).await?;
        client.request("GET", target, fields).await
    }

    /// The body of a GET that has to be answered with 200.
    pub async fn body(&self, target: &str, fields: &[(&str, &str)]) -> Result<String> {
        let answer = self.ask(target, fields).await?;
        ensure!(answer.status == 200, "{target}: {answer:?}");
        Ok(answer.text()?.to_owned())
    }

    /// The portal's resident memory, in MiB.
    pub fn memory(&self) -> Result<f64> {
        Ok(cpu::resident_memory(self.id())? as f64 / MIB)
    }

    /// What Redis holds, in bytes.
    pub async fn redis_memory(&self) -> Result<f64> {
        let told = self.redis.command(&["INFO", "memory"]).await?;
        let mut lines = told.lines();
        let bytes = lines.find_map(|line| line.trim().strip_prefix("used_memory:"));
        Ok(bytes.context("Redis tells its memory")?.parse()?)
    }
}
