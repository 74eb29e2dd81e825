//! The gate's own binary, with the settings that it has in a cluster.

use std::net::SocketAddr;

use anyhow::Result;
use water_keystore::Instance;

use crate::server::{IDENTITY, Server, with_settings};
use crate::store::Store;

/// A ready gate.
#[derive(Debug)]
pub struct Gate(Server);

impl Gate {
    /// Starts a gate of `instance` before `service` and waits until it is ready. As behind an
    /// ingress, its peers are proxies whose word on the client's address counts.
    pub async fn start(
        store: &Store,
        instance: &Instance,
        service: SocketAddr,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let server = Server::start("water-gate", |program, number| {
            let program = program
                .env("WATER_REDIS_URL", store.gate_url(instance))
                .env("WATER_INSTANCE", instance.as_str())
                .env("WATER_POD_NAME", format!("gate-{number}"))
                .env("WATER_POD_UID", format!("uid-of-gate-{number}"))
                .env("WATER_DEPARTEMENTS_ADDRESS", service.to_string())
                .env("WATER_HISTORY_ADDRESS", service.to_string())
                .env("WATER_IDENTITY_CURRENT", IDENTITY)
                .env("WATER_TRUSTED_PROXIES", "127.0.0.0/8");
            with_settings(program, settings)
        });
        server.await.map(Self)
    }

    /// Where clients ask.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}
