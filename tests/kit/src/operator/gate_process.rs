//! The gate's own program with the operator: a pod at the API server, a process on loopback, and a service
//! behind it that answers everything.

use anyhow::Result;
use water_harness::HttpClient;
use water_keystore::Instance;

use super::gate::{Started, pod};
use super::samples::API;
use super::world::World;
use crate::Server;
use crate::gate::{Recorder, program};

/// A ready gate.
pub struct GateProcess {
    server: Server,
    _service: Recorder,
}

impl GateProcess {
    /// Starts a gate as the pod of that name, and waits until it is ready.
    pub async fn start(world: &World, name: &str) -> Result<Self> {
        let uid = pod(world, name, true, Started::After)?;
        let service = Recorder::start().await;
        let instance = Instance::new(&world.namespace, API)?;
        let gate = program(&world.redis_url, &instance, name, service.address);
        let server = Server::start(gate.env("WATER_POD_UID", uid)).ready().await;
        Ok(Self {
            server,
            _service: service,
        })
    }

    /// Opens a connection to its own address.
    pub async fn connect(&self) -> Result<HttpClient> {
        HttpClient::connect(self.server.address()).await
    }
}
