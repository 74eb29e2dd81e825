//! The gate's own binary, with the settings that it has in a cluster.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use water_harness::{HttpClient, Port, Process, Program};
use water_keystore::Instance;

use super::workload::IDENTITY;
use crate::binary::beside;
use crate::store::Store;

/// Longer than a start with the largest directory takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// A ready gate.
#[derive(Debug)]
pub struct Gate {
    process: Process,
    http: Port,
}

impl Gate {
    /// Starts a gate of `instance` before `service` and waits until it is ready. As behind an
    /// ingress, its peers are proxies whose word on the client's address counts.
    pub async fn start(
        store: &Store,
        instance: &Instance,
        service: SocketAddr,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let (http, admin) = (Port::reserve()?, Port::reserve()?);
        let mut program = Program::new(beside("water-gate")?)
            .env("WATER_LISTEN_ADDRESS", http.address().to_string())
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string())
            .env("WATER_REDIS_URL", store.gate_url(instance))
            .env("WATER_INSTANCE", instance.as_str())
            .env("WATER_POD_NAME", format!("gate-{}", http.number()))
            .env("WATER_POD_UID", format!("uid-of-gate-{}", http.number()))
            .env("WATER_DEPARTEMENTS_ADDRESS", service.to_string())
            .env("WATER_HISTORY_ADDRESS", service.to_string())
            .env("WATER_IDENTITY_CURRENT", IDENTITY)
            .env("WATER_TRUSTED_PROXIES", "127.0.0.0/8");
        for (name, value) in settings {
            program = program.env(name, value);
        }
        let process = program.start()?;
        let ready = async || -> Result<()> {
            let mut client = HttpClient::connect(admin.address()).await?;
            let answer = client.request("GET", "/ready", &[]).await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        };
        process.ready(SOON, ready).await?;
        Ok(Self { process, http })
    }

    /// Where clients ask.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}
