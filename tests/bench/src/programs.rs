//! The product's programs, built as this one is, with the settings that they have in a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use water_harness::{HttpClient, Port, Process, Program};
use water_keystore::Instance;

use crate::store::Store;

/// Key that identities are signed with: it protects nothing here.
pub const IDENTITY: &str = "6265206e6f742061667261696420746f206d65617375726520697420616c6c21";

/// Longer than a start with the largest key directory takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Program of that name in the folder of this one: both are built alike.
pub fn find(program: &str) -> Result<PathBuf> {
    let file = std::env::current_exe()?.with_file_name(program);
    file.canonicalize().with_context(|| {
        format!(
            "there is no {}: build it first; `cargo dev bench` does, and `cargo build --package {program}`",
            file.display()
        )
    })
}

/// Waits until the process reports at its admin port that it is ready.
pub async fn until_ready(process: &Process, admin: &Port) -> Result<()> {
    let ready = async || {
        let mut client = HttpClient::connect(admin.address()).await?;
        let answer = client.request("GET", "/ready", &[]).await?;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    };
    process.ready(SOON, ready).await
}

/// Gate or service that is ready.
#[derive(Debug)]
pub struct Server {
    process: Process,
    http: Port,
}

impl Server {
    /// Starts a gate of `instance` before `service`. As behind an ingress, its peers are proxies whose word on
    /// the client's address counts.
    pub async fn gate(
        store: &Store,
        instance: &Instance,
        service: SocketAddr,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let (url, service) = (store.url(instance, "gate"), service.to_string());
        let known = [
            ("WATER_REDIS_URL", url.as_str()),
            ("WATER_INSTANCE", instance.as_str()),
            ("WATER_DEPARTEMENTS_ADDRESS", &service),
            ("WATER_HISTORY_ADDRESS", &service),
            ("WATER_TRUSTED_PROXIES", "127.0.0.0/8"),
        ];
        Self::start("water-gate", &[&known, settings].concat()).await
    }

    /// Starts a service of the départements that reads the database of this URL.
    pub async fn departements(postgres_url: &str) -> Result<Self> {
        let known = [("WATER_POSTGRES_URL", postgres_url)];
        Self::start("water-departements", &known).await
    }

    /// Starts a history service with so many connections to the database of this URL.
    pub async fn history(postgres_url: &str, connections: &str) -> Result<Self> {
        let known = [
            ("WATER_POSTGRES_URL", postgres_url),
            ("WATER_POSTGRES_CONNECTIONS", connections),
        ];
        Self::start("water-history", &known).await
    }

    /// Starts the program of that name and waits until it is ready. `settings` may replace its pod's name, which
    /// no other program has.
    async fn start(name: &str, settings: &[(&str, &str)]) -> Result<Self> {
        let (http, admin) = (Port::reserve()?, Port::reserve()?);
        let pod = format!("{name}-{}", http.number());
        let program = Program::new(find(name)?)
            .env("WATER_LISTEN_ADDRESS", http.address().to_string())
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string())
            .env("WATER_IDENTITY_CURRENT", IDENTITY)
            .env("WATER_POD_NAME", &pod)
            .env("WATER_POD_UID", &pod);
        let set = |program: Program, (name, value): &(&str, &str)| program.env(*name, *value);
        let process = settings.iter().fold(program, set).start()?;
        until_ready(&process, &admin).await?;
        Ok(Self { process, http })
    }

    /// Address that it answers requests at.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}
