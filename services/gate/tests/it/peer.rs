//! More gates of one site.

use anyhow::Result;
use water_harness::{Answer, HttpClient, Port, Process, Redis};

use crate::site::{GATE, Site, ask, program, until_ready};

/// Another gate of a site: the same directory, limits and service.
pub struct Peer {
    pub gate: Process,
    http: Port,
    admin: Port,
}

impl Peer {
    /// A new connection to it.
    pub async fn connect(&self) -> HttpClient {
        HttpClient::connect(self.http.address()).await.unwrap()
    }

    /// What its admin port says.
    pub async fn admin(&self, path: &str) -> Result<Answer> {
        ask(&self.admin, path).await
    }

    async fn ready(&self) {
        until_ready(&self.gate, &self.admin).await;
    }
}

impl Site {
    /// Another gate, ready, on the same Redis.
    pub async fn another(&self, redis: &Redis, pod: &str) -> Peer {
        let (http, admin) = (Port::reserve().unwrap(), Port::reserve().unwrap());
        let service = self.service.address.to_string();
        let program = program(&[GATE], pod, &http, &admin)
            .env("WATER_REDIS_URL", redis.url())
            .env("WATER_INSTANCE", self.instance.as_str())
            .env("WATER_DEPARTEMENTS_ADDRESS", &service)
            .env("WATER_HISTORY_ADDRESS", &service);
        let peer = Peer {
            gate: program.start().unwrap(),
            http,
            admin,
        };
        peer.ready().await;
        peer
    }
}
